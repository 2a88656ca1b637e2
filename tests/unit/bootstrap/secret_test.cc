// Who may join a job whose rendezvous is at a known address.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "harness/reserved_port.h"
#include "ranks.h"
#include "transport/handshake.h"

namespace falcon::bootstrap {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* rightSecret = "correct horse battery staple";
constexpr const char* wrongSecret = "incorrect donkey";

/// What a forked rank logs and how its join ended, in files that go with this object.
class Trial {
 public:
  Trial() {
    std::string pattern = (std::filesystem::temp_directory_path() / "falcon-secret-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Trial() { std::filesystem::remove_all(folder_); }
  Trial(const Trial&) = delete;

  /// A rank with this secret (null: none); its exit code is 0 if it joined.
  Process rank(Rank rank, int size, const char* secret, Nanoseconds limit = 60s) const {
    return Process([this, rank, size, secret, limit] {
      setenv("NCCL_COMM_ID", address_.c_str(), 1);
      setenv("NCCL_DEBUG", "TRACE", 1);
      setenv("NCCL_DEBUG_FILE", file("log", rank).c_str(), 1);
      if (secret) setenv("NCCL_FALCON_SECRET", secret, 1);
      falcon::log::reset();
      const auto id = makeUniqueId();
      if (!id) return 2;
      const auto network = join(*transport::processReactor(), *id, rank, size, limit);
      if (!network) {
        std::ofstream(file("error", rank)) << network.error().message();
        return network.error().code() == ErrorCode::invalidUsage ? 3 : 4;
      }
      return (*network)->barrier(60s) ? 0 : 5;
    });
  }
  const std::string& address() const { return address_; }
  std::string log(Rank rank) const { return contents(file("log", rank)); }
  std::string error(Rank rank) const { return contents(file("error", rank)); }

 private:
  std::string file(const char* kind, Rank rank) const { return folder_ + "/" + kind + std::to_string(rank); }
  static std::string contents(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  const test::ReservedPort port_;  // where rank 0 will open the rendezvous
  const std::string address_ = port_.text();
  std::string folder_;
};

constexpr const char* warning = "NCCL_FALCON_SECRET is not set";

TEST(Secret, RanksThatShareItJoinAndNobodyLogsIt) {
  const Trial trial;
  std::vector<Process> ranks;
  for (const Rank rank : {0, 1, 2}) ranks.push_back(trial.rank(rank, 3, rightSecret));
  for (Process& rank : ranks) EXPECT_EQ(rank.wait(), 0);
  for (const Rank rank : {0, 1, 2})
    EXPECT_THAT(trial.log(rank), AllOf(Not(HasSubstr(rightSecret)), Not(HasSubstr(warning))));
}

TEST(Secret, WithoutOneRankZeroSaysSoOnce) {
  const Trial trial;
  std::vector<Process> ranks;
  for (const Rank rank : {0, 1}) ranks.push_back(trial.rank(rank, 2, nullptr));
  for (Process& rank : ranks) EXPECT_EQ(rank.wait(), 0);
  const std::string log = trial.log(0);
  const auto first = log.find(warning);
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(log.find(warning, first + 1), std::string::npos);
  EXPECT_THAT(trial.log(1), Not(HasSubstr(warning)));
}

struct Mismatch {
  const char* rankZeros;
  const char* joiners;
};
class WrongSecret : public testing::TestWithParam<Mismatch> {};

TEST_P(WrongSecret, IsToldToTheJoinerAtOnceAndDoesNotDisturbTheOthers) {
  const Trial trial;
  std::vector<Process> ranks;
  for (const Rank rank : {0, 1}) ranks.push_back(trial.rank(rank, 3, GetParam().rankZeros));
  // It would wait for an hour if it were not turned away.
  Process stranger = trial.rank(2, 3, GetParam().joiners, 1h);
  EXPECT_EQ(stranger.wait(), 3);
  EXPECT_THAT(trial.error(2), AllOf(HasSubstr("different secrets"), HasSubstr("NCCL_FALCON_SECRET")));
  if (const char* its = GetParam().joiners) {
    EXPECT_THAT(trial.log(2) + trial.error(2), Not(HasSubstr(its)));
  }
  // Its place is still free for who knows the secret.
  ranks.push_back(trial.rank(2, 3, GetParam().rankZeros));
  for (Process& rank : ranks) EXPECT_EQ(rank.wait(), 0);
  EXPECT_THAT(trial.log(0), HasSubstr("does not know the secret"));
}
INSTANTIATE_TEST_SUITE_P(Of, WrongSecret,
                         testing::Values(Mismatch{rightSecret, wrongSecret}, Mismatch{rightSecret, nullptr},
                                         Mismatch{nullptr, wrongSecret}),
                         [](const auto& mismatch) -> std::string {
                           return mismatch.index == 0   ? "Another"
                                  : mismatch.index == 1 ? "NoneAtTheJoiner"
                                                        : "NoneAtRankZero";
                         });

// One that took the port of NCCL_COMM_ID before rank 0 did, and speaks the protocol.
TEST(Secret, WhoListensWithoutItIsNotToldWhoComes) {
  const Trial trial;
  const SocketAddress address = *SocketAddress::parse(trial.address());
  FileDescriptor listener(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ASSERT_EQ(bind(listener.get(), address.get(), address.length()), 0);
  ASSERT_EQ(listen(listener.get(), 8), 0);
  Process rank = trial.rank(1, 2, rightSecret, 1h);
  FileDescriptor came(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const std::string opening = transport::encodeOpening(transport::Purpose::rendezvous, 0, {});
  std::string heard(opening.size(), ' ');
  ASSERT_EQ(recv(came.get(), heard.data(), heard.size(), MSG_WAITALL), static_cast<ssize_t>(heard.size()));
  const std::string challenge = transport::encodeChallenge({}, {}, {});
  ASSERT_EQ(send(came.get(), challenge.data(), challenge.size(), MSG_NOSIGNAL), static_cast<ssize_t>(challenge.size()));
  char more;
  EXPECT_LE(recv(came.get(), &more, 1, 0), 0) << "it said more to a stranger";
  EXPECT_EQ(rank.wait(), 3);
  EXPECT_THAT(trial.error(1), AllOf(HasSubstr("stranger"), HasSubstr(trial.address()), HasSubstr("NCCL_COMM_ID")));
}

TEST(Secret, EveryBitOfItCounts) {
  const auto address = *SocketAddress::parse("10.0.0.1:4000");
  const auto secretOf = [&](std::string_view text) { return idOfFixedAddress(address, text).secret; };
  EXPECT_EQ(secretOf("a"), secretOf("a"));
  EXPECT_NE(secretOf("a"), secretOf("b"));
  EXPECT_NE(secretOf(""), secretOf("a"));
  EXPECT_NE(secretOf("a"), idOfFixedAddress(*SocketAddress::parse("10.0.0.1:4001"), "a").secret);
  EXPECT_TRUE(hasFixedAddress(idOfFixedAddress(address, "a")));
}

}  // namespace
}  // namespace falcon::bootstrap
