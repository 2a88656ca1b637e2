// Recordings, traces and the live view of real jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "multi_rank/watched_job.h"
#include "unit/jobs/trace_rules.h"

namespace falcon::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

/// A job whose rank 1 sleeps for ever after 40 calls of each.
class Watched : public testing::Test {
 protected:
  void SetUp() override {
    const auto isThere = [&] {
      const Said said({"top", job.name, "--json"});
      if (said.code != 0 || said.json.at("ranks").size() != 4) return false;
      // On the way there, too, three may wait for one.
      for (const json& rank : said.json.at("ranks")) {
        const json& now = rank.at("now");
        if (now.is_object() != (rank.at("rank") != 1) || (now.is_object() && now.at("sequence") != 20)) return false;
      }
      return true;
    };
    ASSERT_TRUE(eventually(isThere)) << job.job.errors();
  }
  WatchedJob job{"sleep"};
  TemporaryFolder folder;
};

int countOf(const json& trace, const std::string& category) {
  int count = 0;
  for (const json& event : trace.at("traceEvents")) count += event.value("cat", "") == category;
  return count;
}

TEST_F(Watched, IsRecordedAndTracedLiveAndAfterACrash) {
  const std::string live = folder.file("live"), dead = folder.file("dead"), trace = folder.file("trace.json");
  const Said recorded({"record", live, "--job", job.name, "--json"});
  ASSERT_EQ(recorded.code, 0) << recorded.errors;
  EXPECT_EQ(recorded.json.at("ranks"), 4);
  EXPECT_EQ(recorded.json.at("calls"), 4 * 40);
  const Said direct({"trace", "--job", job.name});
  EXPECT_THAT(brokenRules(direct.json), IsEmpty());
  const Said hang({"status", "--hang", "--recording", live, "--patience", "0", "--json"});
  ASSERT_EQ(hang.code, 3) << hang.errors;
  EXPECT_EQ(hang.json.at(0).at("job"), job.name);
  EXPECT_EQ(hang.json.at(0).at("findings").at(0).at("culprits").at(0).at("rank"), 1);
  EXPECT_EQ(Said({"status", "--hang", "--recording", folder.file("none")}).code, 1);
  job.killRanks();
  job.job.wait();
  ASSERT_EQ(Said({"record", dead, "--job", job.name}).code, 0);
  for (const std::string& file : {live, dead}) {
    ASSERT_EQ(Said({"trace", file, "-o", trace}).code, 0);
    const json made = json::parse(std::ifstream(trace));
    EXPECT_THAT(brokenRules(made), IsEmpty());
    EXPECT_EQ(countOf(made, "collective"), 4 * 40 + 3);
    EXPECT_GT(countOf(made, "waiting"), 0);
  }
}

TEST_F(Watched, ARecordingOverTimeHasOnlyWhatHappenedThen) {
  const std::string file = folder.file("quiet");
  const Said recorded({"record", file, "--job", job.name, "--seconds", "0.3", "--json"});
  ASSERT_EQ(recorded.code, 0) << recorded.errors;
  EXPECT_EQ(recorded.json.at("calls"), 0);
  EXPECT_EQ(recorded.json.at("missed"), 0);
  EXPECT_EQ(countOf(Said({"trace", file}).json, "collective"), 3);
}

// What a full disk or a broken copy leaves of a recording still has ranks to show.
TEST_F(Watched, ARecordingThatWasCutGivesItsWholeRanks) {
  const std::string file = folder.file("recording");
  ASSERT_EQ(Said({"record", file, "--job", job.name}).code, 0);
  const std::string whole = contentOf(file);
  std::ofstream(file, std::ios::trunc) << whole.substr(0, whole.size() / 2);
  const Said cut({"trace", file});
  EXPECT_EQ(cut.code, 0);
  EXPECT_THAT(cut.errors, HasSubstr(file));
  EXPECT_THAT(cut.errors, HasSubstr("of its 4 ranks are whole"));
  EXPECT_GT(countOf(cut.json, "collective"), 0);
  std::ofstream(file, std::ios::trunc) << whole.substr(0, 40);
  EXPECT_EQ(Said({"trace", file}).code, 1);
}

TEST_F(Watched, FilesThatAreNoRecordingsAreRefused) {
  const std::string file = folder.file("recording");
  std::ofstream(file, std::ios::trunc) << "something else";
  EXPECT_THAT(Said({"trace", file}).errors, HasSubstr("is not a recording"));
  EXPECT_EQ(Said({"trace", folder.file("nothing")}).code, 1);
  EXPECT_EQ(Said({"record", folder.file("x"), "--job", "no-such-job"}).code, 1);
  EXPECT_EQ(Said({"record", folder.file("no/folder"), "--job", job.name}).code, 1);
}

TEST_F(Watched, IsShownARowARankWithoutATerminal) {
  const Said said({"top", job.name});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(linesOf(said.output).size(), 2u + 4);
  EXPECT_THAT(said.output, Not(HasSubstr("\x1b")));
  EXPECT_THAT(said.output, HasSubstr("AllReduce #20"));
}

}  // namespace
}  // namespace falcon::tests
