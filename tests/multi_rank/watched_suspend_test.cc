// `falcon suspend` and `falcon resume` on a real job: it stands still, and then goes on as if nothing had been.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <set>
#include <thread>

#include "multi_rank/watched_job.h"

namespace falcon::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Suspend : public testing::Test {
 protected:
  void SetUp() override {
    const auto calls = [&] {
      const json ranks = this->ranks();
      return ranks.size() == 4 &&
             std::all_of(ranks.begin(), ranks.end(), [](const json& rank) { return rank.at("calls") > 0; });
    };
    ASSERT_TRUE(eventually(calls)) << job.job.errors();
  }

  json ranks() const {
    const Said said({"status", job.name, "--json"});
    return said.json.is_array() ? said.json.at(0).at("ranks") : json::array();
  }
  std::set<std::string> states() const {
    std::set<std::string> states;
    for (const json& rank : ranks()) states.insert(rank.at("state"));
    return states;
  }
  std::vector<std::uint64_t> callsOfAll() const {
    std::vector<std::uint64_t> calls;
    for (const json& rank : ranks()) calls.push_back(rank.at("calls"));
    return calls;
  }
  void expectItGoesOn() const {
    const auto before = callsOfAll();
    EXPECT_TRUE(eventually([&] {
      const auto now = callsOfAll();
      for (std::size_t i = 0; i < before.size(); ++i)
        if (now.at(i) < before[i] + 3) return false;
      return true;
    }));
  }
  /// The ranks check every sum.
  void expectItEndsWell() {
    std::ofstream(folder.file("end")) << "now";
    EXPECT_EQ(job.job.wait(), 0) << job.job.errors();
  }

  TemporaryFolder folder;
  WatchedJob job{"until", {folder.file("end")}};
};

TEST_F(Suspend, HoldsTheJobUntilItIsResumed) {
  const Said suspended({"suspend", job.name, "--for", "600"});
  ASSERT_EQ(suspended.code, 0) << suspended.errors;
  EXPECT_EQ(states(), std::set<std::string>{"suspended"});
  for (const json& rank : ranks()) EXPECT_EQ(rank.at("held"), true);
  const auto before = callsOfAll();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(callsOfAll(), before);

  const Said again({"suspend", job.name});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.errors, HasSubstr("is suspended already"));
  EXPECT_EQ(callsOfAll(), before);

  const Said resumed({"resume", job.name});
  EXPECT_EQ(resumed.code, 0) << resumed.errors;
  EXPECT_EQ(states().count("suspended"), 0U);
  expectItGoesOn();
  expectItEndsWell();
}

TEST_F(Suspend, OfTwoAtOnceIsGrantedToOne) {
  Started first(falconCommand({"suspend", job.name, "--for", "600"}));
  Started second(falconCommand({"suspend", job.name, "--for", "600"}));
  const int codes[] = {first.wait(), second.wait()};
  EXPECT_EQ(codes[0] + codes[1], 1) << first.errors() << second.errors();
  EXPECT_THAT(first.errors() + second.errors(), HasSubstr("is suspended already"));
  EXPECT_EQ(Said({"resume", job.name}).code, 0);
  expectItGoesOn();
  expectItEndsWell();
}

TEST_F(Suspend, IsWhatTheHangViewCallsIt) {
  ASSERT_EQ(Said({"suspend", job.name, "--for", "600"}).code, 0);
  const Said said({"status", job.name, "--hang"});
  EXPECT_THAT(said.output, HasSubstr("suspended, by"));
  EXPECT_THAT(said.output, testing::Not(HasSubstr("validation")));
  EXPECT_EQ(Said({"resume", job.name}).code, 0);
  expectItEndsWell();
}

TEST_F(Suspend, EndsByItselfAtItsLimit) {
  // All have so long to come into the library, too, whatever else the machine does.
  const Said suspended({"suspend", job.name, "--for", "3"});
  ASSERT_EQ(suspended.code, 0) << suspended.errors;
  EXPECT_TRUE(eventually([&] { return !states().contains("suspended"); }));
  expectItGoesOn();
  const Said resumed({"resume", job.name});
  EXPECT_EQ(resumed.code, 1);
  EXPECT_THAT(resumed.errors, HasSubstr("is not suspended"));
  expectItEndsWell();
  for (const char* command : {"suspend", "resume"}) {
    const Said late({command, job.name});
    EXPECT_EQ(late.code, 1);
    EXPECT_THAT(late.errors, HasSubstr("no running job"));
  }
}

TEST_F(Suspend, OfAJobWhoseRankDiesLetsTheOthersGo) {
  const Said suspended({"suspend", job.name, "--for", "600"});
  ASSERT_EQ(suspended.code, 0) << suspended.errors;
  ::kill(ranks().at(1).at("pid").get<pid_t>(), SIGKILL);
  // `falcon run` ends the others when one has died; what they would do by themselves others test.
  EXPECT_NE(job.job.wait(), 0);
  for (const json& rank : ranks()) EXPECT_EQ(rank.at("alive"), false);
  const Said status({"status", job.name});
  EXPECT_THAT(linesOf(status.output).at(0), testing::EndsWith("ended  4 of 4 ranks here"));
}

TEST(SuspendNobody, IsRefused) {
  for (const char* command : {"suspend", "resume"}) {
    const Said said({command, "no-such-job"});
    EXPECT_EQ(said.code, 1);
    EXPECT_THAT(said.errors, HasSubstr("no running job"));
  }
  EXPECT_EQ(Said({"suspend", "no-such-job", "--for", "0"}).code, 2);
}

}  // namespace
}  // namespace falcon::tests
