// Real jobs that hang in a way that is known, and what `falcon status --hang` says of them.
#include <gtest/gtest.h>

#include <algorithm>

#include "multi_rank/watched_job.h"

namespace falcon::tests {
namespace {

using nlohmann::json;

struct Case {
  const char* what;
  const char* kind;  ///< of the first finding
  const char* operation;
  int sequence;
  std::vector<int> culprits;
  const char* words;              ///< in its text
  const char* process = "alive";  ///< of rank 1
};
void PrintTo(const Case& each, std::ostream* out) {
  *out << each.what;
}

std::vector<int> ranksOf(const json& members) {
  std::vector<int> ranks;
  for (const json& member : members) ranks.push_back(member.at("rank").get<int>());
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

/// Of what `falcon status --hang` says of a job, the finding of that call and those culprits; null where there is none.
json findingOf(const json& report, const std::string& kind, const std::string& operation, int sequence,
               const std::vector<int>& culprits) {
  for (const json& finding : report.at("findings"))
    if (finding.at("kind") == kind && finding.at("call").is_object() &&
        finding.at("call").at("operation") == operation && finding.at("call").at("sequence") == sequence &&
        ranksOf(finding.at("culprits")) == culprits)
      return finding;
  return {};
}

class Hang : public testing::TestWithParam<Case> {};

TEST_P(Hang, IsSeenFromOutsideWithItsCulprit) {
  const Case& expected = GetParam();
  WatchedJob job(expected.what);
  // While the job starts, other waits may be seen for a moment.
  json found;
  const auto isSeen = [&] {
    const Said said({"status", "--hang", job.name, "--patience", "1", "--json"});
    if (said.code != 3) return false;
    const json& report = said.json.at(0);
    EXPECT_EQ(report.at("job"), job.name);
    EXPECT_EQ(report.at("hang"), true);
    const json finding = findingOf(report, expected.kind, expected.operation, expected.sequence, expected.culprits);
    if (!finding.is_null()) {
      found = report;
      found["finding"] = finding;
    }
    return !found.is_null() && found.at("ranks").size() == 4 &&
           found.at("ranks").at(1).at("process") == expected.process;
  };
  ASSERT_TRUE(eventually(isSeen)) << Said({"status", "--hang", job.name, "--patience", "1"}).output << job.job.errors();
  EXPECT_NE(found.at("finding").at("text").get<std::string>().find(expected.words), std::string::npos)
      << found.at("finding").at("text");
  EXPECT_EQ(found.at("ranks").at(1).at("rank"), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Of, Hang,
    testing::Values(Case{"sleep", "not-entered", "AllReduce", 20, {1}, "outside of the library"},
                    Case{"stop", "not-entered", "AllReduce", 20, {1}, "is stopped", "stopped"},
                    Case{"kill", "failed", "AllReduce", 20, {1}, "has died", "dead"},
                    Case{"chain", "not-entered", "AllReduce", 20, {1}, "1 other waits in it"},
                    Case{"skip", "not-entered", "AllReduce", 20, {1}, "\"half\")"},
                    Case{"other", "mismatch", "AllReduce", 20, {1}, "rank 1 called Broadcast #20 of 77 x int32"},
                    Case{"count", "mismatch", "AllReduce", 20, {1}, "of 60000 x float"},
                    Case{"group", "no-partner", "Recv", 0, {1}, "rank 1 has not entered the Send"},
                    Case{"send", "no-partner", "Recv", 1, {0}, "rank 0 has not entered the Send"}),
    [](const auto& each) { return std::string(each.param.what); });

struct MakingCase {
  const char* what;
  const char* kind;
  const char* function;
  std::vector<const char*> words;  ///< in the finding's text
};
void PrintTo(const MakingCase& each, std::ostream* out) {
  *out << each.what;
}

class HangInTheMaking : public testing::TestWithParam<MakingCase> {};

TEST_P(HangInTheMaking, IsSeenFromOutsideWithItsCulprit) {
  const MakingCase& expected = GetParam();
  WatchedJob job(expected.what);
  json found;
  const auto isSeen = [&] {
    const Said said({"status", "--hang", job.name, "--patience", "1", "--json"});
    if (said.code != 3) return false;
    for (const json& finding : said.json.at(0).at("findings"))
      if (finding.at("kind") == expected.kind && finding.at("making").is_object() &&
          finding.at("making").at("function") == expected.function && finding.at("cause") == true &&
          ranksOf(finding.at("culprits")) == std::vector<int>{1} && finding.at("waiting").size() >= 3)
        found = finding;
    return !found.is_null();
  };
  ASSERT_TRUE(eventually(isSeen)) << Said({"status", "--hang", job.name, "--patience", "1"}).output << job.job.errors();
  EXPECT_EQ(found.at("making").at("size"), 4);
  for (const char* words : expected.words)
    EXPECT_NE(found.at("text").get<std::string>().find(words), std::string::npos) << found.at("text");
}

INSTANTIATE_TEST_SUITE_P(
    Of, HangInTheMaking,
    testing::Values(
        MakingCase{"init-late",
                   "not-entered",
                   "ncclCommInitRank",
                   {"ranks 0, 2, 3 wait in", "of 4 ranks (dp)", "rank 1 has not entered it", "no log here"}},
        MakingCase{"init-stop", "stuck", "ncclCommInitRank", {"all have entered it", "is stopped"}},
        MakingCase{"init-second",
                   "not-entered",
                   "ncclCommInitRank",
                   {"rank 1 has not entered it", "outside of the library for"}},
        MakingCase{
            "init-split", "not-entered", "ncclCommSplit", {"rank 1 has not entered it", "outside of the library for"}}),
    [](const auto& each) {
      std::string name = each.param.what;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(NoHang, IsNotSeenInAJobThatEnded) {
  WatchedJob job("none");
  EXPECT_EQ(job.job.wait(), 0) << job.job.errors();
  const Said said({"status", "--hang", job.name, "--json"});
  EXPECT_EQ(said.code, 0) << said.output;
  for (const json& rank : said.json.at(0).at("ranks")) EXPECT_EQ(rank.at("process"), "ended");
}

TEST(HangInStatus, IsPointedAt) {
  WatchedJob job("sleep");
  const std::string words = "`falcon status --hang " + job.name + "` says who waits for whom";
  ASSERT_TRUE(eventually([&] { return Said({"status", job.name}).output.find(words) != std::string::npos; }));
  EXPECT_GE(Said({"status", job.name, "--json"}).json.at(0).at("calls_open_s"), 5);
  job.killRanks();
  job.job.wait();
  EXPECT_TRUE(Said({"status", job.name, "--json"}).json.at(0).at("calls_open_s").is_null());
}

// All are killed at once, as a watchdog does it: the logs still tell.
TEST(HangOfTheDead, IsSeenAfterAllHaveBeenKilled) {
  WatchedJob job("sleep");
  // The hang itself: while the job starts, others may be waited for.
  const auto waits = [&] {
    const Said said({"status", "--hang", job.name, "--patience", "1", "--json"});
    return said.code == 3 && !findingOf(said.json.at(0), "not-entered", "AllReduce", 20, {1}).is_null();
  };
  ASSERT_TRUE(eventually(waits)) << job.job.errors();
  job.killRanks();
  job.job.wait();
  const Said said({"status", "--hang", job.name, "--patience", "1", "--json"});
  ASSERT_EQ(said.code, 3) << said.output;
  const json& finding = said.json.at(0).at("findings").at(0);
  EXPECT_EQ(finding.at("kind"), "not-entered");
  EXPECT_EQ(ranksOf(finding.at("culprits")), std::vector<int>{1});
}

struct Crash {
  const char* what;
  const char* kind;
  const char* words;
};
void PrintTo(const Crash& each, std::ostream* out) {
  *out << each.what;
}

class CrashOfTheDead : public testing::TestWithParam<Crash> {};

// The others' calls have ended with an error before they were killed.
TEST_P(CrashOfTheDead, IsSeenAfterAllHaveBeenKilled) {
  WatchedJob job(GetParam().what);
  const auto failed = [&] {
    const std::string errors = job.job.errors();
    const auto others = {"[0] stuck_probe: ", "[2] stuck_probe: ", "[3] stuck_probe: "};
    return std::all_of(others.begin(), others.end(),
                       [&](const char* words) { return errors.find(words) != std::string::npos; });
  };
  const auto seen = [&] { return Said({"status", "--hang", job.name, "--patience", "1"}).code == 3; };
  ASSERT_TRUE(eventually([&] { return failed() && seen(); })) << job.job.errors();
  job.killRanks();
  job.job.wait();
  const Said said({"status", "--hang", job.name, "--json"});
  ASSERT_EQ(said.code, 3) << said.output;
  EXPECT_EQ(said.json.at(0).at("over"), true);
  const json& finding = said.json.at(0).at("findings").at(0);
  EXPECT_EQ(finding.at("kind"), GetParam().kind);
  EXPECT_EQ(ranksOf(finding.at("culprits")), std::vector<int>{1});
  EXPECT_NE(finding.at("text").get<std::string>().find(GetParam().words), std::string::npos) << finding.at("text");
}

INSTANTIATE_TEST_SUITE_P(Of, CrashOfTheDead,
                         testing::Values(Crash{"kill", "failed", "rank 1: its process has died"},
                                         Crash{"other", "mismatch", "rank 1 called Broadcast #20 of 77 x int32"}),
                         [](const auto& each) { return std::string(each.param.what); });

}  // namespace
}  // namespace falcon::tests
