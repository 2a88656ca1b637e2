#include "control/network_conditions.h"

#include <gtest/gtest.h>

#include <cstring>

#include "control/transfer_sums.h"
#include "falcon_net_state.h"

namespace falcon::control {
namespace {

falconNetConnection_v1 connectionTo(const char* peer, int condition, double score, bool sends = true) {
  falconNetConnection_v1 connection{};
  std::strncpy(connection.peer, peer, sizeof connection.peer - 1);
  connection.condition = condition;
  connection.score = score;
  connection.sends = sends ? 1 : 0;
  return connection;
}

transport::net::NetSnapshot snapshot(std::vector<falconNetConnection_v1> connections) {
  return {"a plugin", {}, std::move(connections)};
}

TEST(NetworkConditions, TheWorstThatIsSaidWhileProfilingIsKept) {
  TransferSums sums;
  sums.note(snapshot({connectionTo("10.0.0.2:7", falconNetCongested, 0.9)}));
  EXPECT_TRUE(sums.take().net.empty()) << "nobody profiles";
  sums.enable(true);
  sums.note(snapshot({connectionTo("10.0.0.2:7", falconNetSlow, 0.2), connectionTo("10.0.0.3:7", falconNetUnknown, 0),
                      connectionTo("10.0.0.4:7", falconNetCongested, 0.9, false)}));
  sums.note(snapshot({connectionTo("10.0.0.2:7", falconNetCongested, 0.6)}));
  sums.note(snapshot({connectionTo("10.0.0.2:7", falconNetHealthy, 0.05)}));
  const TransferProfile profile = sums.take();
  ASSERT_EQ(profile.net.size(), 1U);
  EXPECT_EQ(profile.net[0].peer, "10.0.0.2:7");
  EXPECT_EQ(profile.net[0].condition, falconNetCongested);
  EXPECT_EQ(profile.net[0].score, 0.6);
  EXPECT_TRUE(sums.take().net.empty());
}

JobView jobAt(std::initializer_list<const char*> addresses) {
  JobView job;
  Rank rank = 0;
  for (const char* address : addresses) {
    job.handle(100 + static_cast<ProcessId>(rank), Introduce{rank, "host", "", address, 1});
    ++rank;
  }
  return job;
}

TEST(NetworkConditions, AreThoseOfLinksBetweenTheAddresses) {
  JobView job = jobAt({"10.0.0.1:40", "10.0.0.2:50", "10.0.0.2:51", "[fe80::7]:9"});
  job.members()[100].transfers.net = {{"10.0.0.2:7", falconNetCongested, 0.6},
                                      {"10.0.0.2:8", falconNetSlow, 0.2},
                                      {"[fe80::7]:1", falconNetHealthy, 0.01},
                                      {"10.0.0.99:1", falconNetSlow, 0.3},
                                      {"mlx5_0", falconNetSlow, 0.3}};
  const auto conditions = networkConditions(job);
  ASSERT_EQ(conditions.size(), 3U);
  for (const Rank to : {1, 2}) {
    EXPECT_EQ(conditions.at({0, to}).condition, falconNetCongested);
    EXPECT_EQ(conditions.at({0, to}).score, 0.6) << "the worst";
  }
  EXPECT_EQ(conditions.at({0, 3}).condition, falconNetHealthy);
}

TEST(NetworkConditions, OfAJobWithoutPluginsAreNone) {
  EXPECT_TRUE(networkConditions(jobAt({"10.0.0.1:40", "", "10.0.0.2:51"})).empty());
}

}  // namespace
}  // namespace falcon::control
