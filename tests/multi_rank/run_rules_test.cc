// The pure parts of `falcon run` and `falcon inject`.
#include <gtest/gtest.h>

#include <csignal>
#include <set>

#include "inject/outcome.h"
#include "inject/traffic_limit.h"
#include "machine/description.h"
#include "number_rules.h"
#include "run/end_policy.h"
#include "run/environment.h"
#include "run/placement.h"
#include "run/prefixed_lines.h"

namespace falcon::tools {
namespace {

using Action = EndPolicy::Action;

std::vector<int> coresUpTo(int count) {
  std::vector<int> cores;
  for (int core = 0; core < count; ++core) cores.push_back(core);
  return cores;
}

RunOptions optionsFor(int ranks, int nodes, Bind bind = Bind::automatic) {
  RunOptions options;
  options.ranks = ranks;
  options.nodes = nodes;
  options.bind = bind;
  options.program = {"true"};
  return options;
}

TEST(PlaceRanks, NodesTakeBlocksOfAlmostEqualSize) {
  for (int ranks = 1; ranks <= 20; ++ranks) {
    for (int nodes = 1; nodes <= ranks; ++nodes) {
      const auto places = placeRanks(optionsFor(ranks, nodes), coresUpTo(2));
      ASSERT_EQ(places.size(), static_cast<size_t>(ranks));
      int before = 0;
      int local = 0;
      for (const auto& place : places) {
        ASSERT_TRUE(place.node == before || place.node == before + 1) << ranks << " on " << nodes;
        local = place.node == before ? local : 0;
        before = place.node;
        EXPECT_EQ(place.localRank, local++);
        EXPECT_TRUE(place.localSize == ranks / nodes || place.localSize == ranks / nodes + 1);
      }
      EXPECT_EQ(before, nodes - 1);
    }
  }
}

TEST(PlaceRanks, AutomaticBindingSharesAllCoresOutOrNone) {
  for (int cores = 1; cores <= 9; ++cores) {
    for (int ranks = 1; ranks <= 12; ++ranks) {
      std::multiset<int> used;
      for (const auto& place : placeRanks(optionsFor(ranks, 0), coresUpTo(cores))) {
        EXPECT_EQ(place.cores.empty(), ranks > cores);
        used.insert(place.cores.begin(), place.cores.end());
      }
      EXPECT_EQ(used.size(), ranks > cores ? 0u : static_cast<size_t>(cores));
      EXPECT_EQ(std::set<int>(used.begin(), used.end()).size(), used.size());
    }
  }
}

TEST(PlaceRanks, CoreBindsEveryRankToOneAndNoneToNone) {
  for (const auto& place : placeRanks(optionsFor(5, 0, Bind::core), {4, 6}))
    EXPECT_EQ(place.cores, std::vector<int>{place.rank % 2 == 0 ? 4 : 6});
  for (const auto& place : placeRanks(optionsFor(2, 0, Bind::none), coresUpTo(8))) EXPECT_TRUE(place.cores.empty());
}

TEST(Addresses, AreDifferentForAllRanks) {
  std::set<std::string> addresses;
  for (int rank = 0; rank < 4096; ++rank) EXPECT_TRUE(addresses.insert(addressOf(rank)).second);
  EXPECT_EQ(addressOf(0), "10.211.0.10");
  EXPECT_EQ(addressOf(200), "10.211.1.10");
}

TEST(WhyNot, NamesTheValueAndTheRemedy) {
  EXPECT_FALSE(whyNot(optionsFor(2, 2)));
  EXPECT_NE(whyNot(optionsFor(0, 0))->find("-n 0"), std::string::npos);
  EXPECT_NE(whyNot(optionsFor(2, 3))->find("--nodes 3"), std::string::npos);
  EXPECT_TRUE(whyNot(optionsFor(2, -1)));
}

TEST(EnvironmentOf, KeepsWhatTheUserChose) {
  const JobSettings job{"run", "job", 4, 2, "10.0.0.1", 29500, "/lib/of/falcon"};
  const RankPlacement place{3, 1, 1, 2, {}, 5};  // in the place of a spare
  const auto fresh = environmentOf(place, job, {});
  EXPECT_EQ(fresh.at("NCCL_FALCON"), "1");
  EXPECT_EQ(fresh.at("LD_LIBRARY_PATH"), "/lib/of/falcon");
  EXPECT_EQ(fresh.at("NCCL_SOCKET_IFNAME"), "=rank5");
  EXPECT_EQ(fresh.at("NCCL_HOSTID"), "node1-run");
  const auto chosen = environmentOf(place, job, {{"NCCL_FALCON", "0"}, {"LD_LIBRARY_PATH", "/mine"}});
  EXPECT_FALSE(chosen.contains("NCCL_FALCON"));
  EXPECT_EQ(chosen.at("LD_LIBRARY_PATH"), "/lib/of/falcon:/mine");
}

TEST(EnvironmentOf, NamesTheLibraryToNvtxUnlessItIsAProfilersOrUnwanted) {
  const JobSettings job{.run = "run", .job = "job", .masterAddress = "", .libraryFolder = "/lib/of/falcon"};
  const auto given = [&](const Environment& inherited) { return environmentOf({}, job, inherited); };
  EXPECT_EQ(given({}).at("NVTX_INJECTION64_PATH"), "/lib/of/falcon/libnccl.so.2");
  EXPECT_TRUE(given({{"NCCL_FALCON_NVTX", "auto"}, {"NCCL_FALCON", "1"}}).contains("NVTX_INJECTION64_PATH"));
  EXPECT_FALSE(given({{"NVTX_INJECTION64_PATH", "/profiler.so"}}).contains("NVTX_INJECTION64_PATH"));
  EXPECT_FALSE(given({{"NCCL_FALCON_NVTX", "off"}}).contains("NVTX_INJECTION64_PATH"));
  EXPECT_FALSE(given({{"NCCL_FALCON", "0"}}).contains("NVTX_INJECTION64_PATH"));
}

TEST(EnvironmentOf, GivesTheJobASecretUnlessRanksElsewhereMayBePartOfIt) {
  const JobSettings job{.run = "run", .job = "job", .masterAddress = "", .libraryFolder = "", .secret = "s"};
  EXPECT_EQ(environmentOf({}, job, {}).at("NCCL_FALCON_SECRET"), "s");
  EXPECT_FALSE(environmentOf({}, job, {{"NCCL_FALCON_SECRET", "mine"}}).contains("NCCL_FALCON_SECRET"));
  EXPECT_FALSE(environmentOf({}, job, {{"NCCL_COMM_ID", "10.0.0.1:4000"}}).contains("NCCL_FALCON_SECRET"));
}

TEST(JobNameOf, KeepsTheUsersNameAndNotOneThatAnOuterRunMadeUp) {
  EXPECT_EQ(jobNameOf({}, "7-ab"), "run-7-ab");
  EXPECT_EQ(jobNameOf({{"NCCL_FALCON_JOB", ""}}, "7-ab"), "run-7-ab");
  EXPECT_EQ(jobNameOf({{"NCCL_FALCON_JOB", "mine"}}, "7-ab"), "mine");
  const auto insideOf = [](const Environment& outer) {
    JobSettings job{.run = "5-cd", .job = jobNameOf(outer, "5-cd"), .masterAddress = "", .libraryFolder = ""};
    return environmentOf({}, job, outer);
  };
  EXPECT_EQ(jobNameOf(insideOf({}), "7-ab"), "run-7-ab");
  EXPECT_EQ(jobNameOf(insideOf({{"NCCL_FALCON_JOB", "mine"}}), "7-ab"), "mine");
}

TEST(NumberRules, RefuseWhatIsNoNumberOfTheRange) {
  const auto takes = [](const CLI::Validator& rule, std::string text) { return rule(text).empty(); };
  for (const char* bad : {"nan", "inf", "-inf", "", "x", "2x", "0", "-1", "1e30", "1"})
    EXPECT_FALSE(takes(numberAbove(1, 10), bad)) << bad;
  for (const char* good : {"1.01", "10", "2e0"}) EXPECT_TRUE(takes(numberAbove(1, 10), good)) << good;
  EXPECT_TRUE(takes(numberFrom(1, 10), "1"));
  for (const char* bad : {"nan", "0.99", "10.1"}) EXPECT_FALSE(takes(numberFrom(1, 10), bad)) << bad;
  for (const char* bad : {"-1", "+1", "", "1.5", "nan"}) EXPECT_FALSE(takes(wholeNumber(), bad)) << bad;
  EXPECT_TRUE(takes(wholeNumber(), "18446744073709551615"));
  EXPECT_FALSE(takes(wholeNumber(), "18446744073709551616"));
}

TEST(PrefixedLines, GivesTheSameLinesHoweverTheBytesArrive) {
  const std::string text = "first\n\nthird line\nlast";
  const std::string expected = "[7] first\n[7] \n[7] third line\n[7] last\n";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    PrefixedLines lines("[7] ");
    std::string out;
    for (size_t at = 0; at < text.size(); at += piece) {
      out += lines.add(std::string_view(text).substr(at, piece));
      EXPECT_TRUE(out.empty() || out.back() == '\n');
    }
    EXPECT_EQ(out + lines.finish(), expected);
    EXPECT_EQ(lines.finish(), "");
  }
}

TEST(PrefixedLines, BreaksAStreamWithoutLines) {
  PrefixedLines lines("");
  size_t out = 0;
  for (int i = 0; i < 40; ++i) out += lines.add(std::string(100'000, 'x')).size();
  EXPECT_GT(out, 2'000'000u);
}

TEST(EndPolicy, LetsSurvivorsNoticeThenAsksThenKills) {
  EndPolicy policy;
  EXPECT_EQ(policy.due(100s), Action::none);
  EXPECT_FALSE(policy.next());
  policy.rankFailed(10s);
  policy.rankFailed(12s);  // a second one does not put the end off
  EXPECT_EQ(policy.due(15s), Action::none);
  EXPECT_EQ(*policy.next(), 16s);
  EXPECT_EQ(policy.due(16s), Action::terminate);
  EXPECT_EQ(policy.due(16s), Action::none);
  EXPECT_EQ(*policy.next(), 19s);
  EXPECT_EQ(policy.due(19s), Action::kill);
  EXPECT_EQ(policy.due(1000s), Action::none);
  EXPECT_FALSE(policy.next());
}

TEST(EndPolicy, ASignalFromOutsideLeavesTimeToSave) {
  EndPolicy policy;
  policy.signalPassedOn(SIGTERM, 1s);
  EXPECT_FALSE(policy.next());
  policy.rankFailed(2s);
  EXPECT_EQ(policy.due(31s), Action::none);
  EXPECT_EQ(policy.due(32s), Action::kill);
}

TEST(EndPolicy, TheSecondInterruptKillsButUserSignalsDoNot) {
  EndPolicy policy;
  for (int i = 0; i < 3; ++i) policy.signalPassedOn(SIGUSR1, 1s);
  policy.signalPassedOn(SIGINT, 1s);
  EXPECT_EQ(policy.due(1s), Action::none);
  policy.signalPassedOn(SIGINT, 2s);
  EXPECT_EQ(policy.due(2s), Action::kill);
}

TEST(Description, ComesBackAsItWasWritten) {
  JobDescription job{"name", "12-ab", 12, 13, 2, {}};
  job.ranks.push_back({0, 100, 0, "/proc/13/fd/7", "rank0", "10.211.0.10", "/sys/fs/cgroup/cpu/x"});
  job.ranks.push_back({1, 101, 1, "", "", "", ""});
  const auto back = parseDescription(toJson(job));
  ASSERT_TRUE(back);
  EXPECT_EQ(toJson(*back), toJson(job));
  EXPECT_EQ(back->ranks[0].cgroup, "/sys/fs/cgroup/cpu/x");
  EXPECT_FALSE(parseDescription("{}"));
  EXPECT_FALSE(parseDescription("nonsense"));
  EXPECT_FALSE(rankOf(*back, 2));
}

TEST(ParseClassCounters, ReadsTheClassThatIsMeantOnly) {
  const std::string text =
      "class htb 1:3 root prio 0 rate 10Mbit ceil 10Mbit burst 16Kb cburst 16Kb \n"
      " Sent 1234 bytes 5 pkt (dropped 1, overlimits 6 requeues 0) \n"
      " backlog 0b 0p requeues 0\n"
      "class htb 1:30 root prio 0 rate 10Mbit ceil 10Mbit burst 16Kb cburst 16Kb \n"
      " Sent 99 bytes 1 pkt (dropped 0, overlimits 0 requeues 0) \n";
  const auto found = parseClassCounters(text, "1:3");
  EXPECT_EQ(found.bytes, 1234u);
  EXPECT_EQ(found.packets, 5u);
  EXPECT_EQ(found.held, 6u);
  EXPECT_EQ(parseClassCounters(text, "1:30").bytes, 99u);
  EXPECT_EQ(parseClassCounters(text, "1:4").bytes, 0u);
}

TEST(Effective, NeedsTheCountersToSaySo) {
  Outcome rank;
  rank.kind = InjectionKind::slowRank;
  rank.coresBefore = 1;
  rank.coresDuring = 0.5;
  EXPECT_FALSE(effective(rank));
  rank.throttledPeriods = 3;
  EXPECT_TRUE(effective(rank));
  rank.coresDuring = 1;
  EXPECT_FALSE(effective(rank));

  Outcome link;
  link.kind = InjectionKind::slowLink;
  EXPECT_FALSE(effective(link));
  link.there = {60'000, 1000, 10};  // acknowledgements only
  EXPECT_FALSE(effective(link));
  link.there = {1'500'000, 1000, 10};
  EXPECT_TRUE(effective(link));
  // Both ways: a ring uses one direction, the other carries acknowledgements only.
  link.bothWays = true;
  EXPECT_TRUE(effective(link));
  std::swap(link.there, link.back);
  EXPECT_TRUE(effective(link));
  link.bothWays = false;
  EXPECT_FALSE(effective(link));
  link.back = {};
  link.bothWays = true;
  EXPECT_FALSE(effective(link));

  // The job's own transport counts bytes and waits only.
  link.insideTransport = true;
  EXPECT_FALSE(effective(link));
  link.there = {.bytes = 70'000, .packets = 0, .held = 0};
  EXPECT_FALSE(effective(link));
  link.there.held = 4;
  EXPECT_TRUE(effective(link));
}

}  // namespace
}  // namespace falcon::tools
