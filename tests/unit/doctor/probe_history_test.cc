// The probe's own history.
#include "doctor/probe_history.h"

#include <gtest/gtest.h>

namespace falcon::doctor {
namespace {

ProbeRecord record(double iteration, double compute = 0.5) {
  return {1000, "here", 2, 0, iteration, compute, 0.1, false};
}

TEST(ProbeHistory, LinesAreReadBack) {
  ProbeRecord written = record(0.125);
  written.slow = true;
  const auto read = parseLine(toLine(written));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->host, "here");
  EXPECT_EQ(read->ranks, 2);
  EXPECT_EQ(read->iteration, 0.125);
  EXPECT_TRUE(read->slow);
  for (const char* line : {"", "{}", "nonsense", "[1]", R"({"time":"x"})"}) EXPECT_FALSE(parseLine(line)) << line;
  EXPECT_FALSE(parseLine(toLine(record(-1))));
}

TEST(ProbeHistory, ComparesWithTheMedianOnceThereIsEnough) {
  std::vector<ProbeRecord> history;
  for (int i = 0; i < 4; ++i) history.push_back(record(1));
  EXPECT_FALSE(compare(record(9), history).slow);
  EXPECT_EQ(compare(record(9), history).ratio, 0);
  history.push_back(record(7));  // one odd run moves no median
  EXPECT_TRUE(compare(record(1.25), history).slow);
  EXPECT_FALSE(compare(record(1.15), history).slow);
  EXPECT_DOUBLE_EQ(compare(record(1.5), history).ratio, 1.5);
}

TEST(ProbeHistory, OnlyAlikeAndHealthyRunsCount) {
  std::vector<ProbeRecord> history(10, record(10));
  for (auto& one : history) one.host = "elsewhere";
  EXPECT_EQ(compare(record(1), history).ratio, 0);
  for (auto& one : history) one.host = "here", one.ranks = 4;
  EXPECT_EQ(compare(record(1), history).ratio, 0);
  for (auto& one : history) one.ranks = 2, one.slow = true;
  EXPECT_EQ(compare(record(1), history).ratio, 0);
  for (auto& one : history) one.slow = false;
  EXPECT_EQ(compare(record(1), history).ratio, 0.1);
}

TEST(ProbeHistory, AHostsNameMayBeAnyBytes) {
  std::vector<ProbeRecord> history;
  ProbeRecord odd = record(1);
  odd.host = "a\xff\"\n";
  for (int i = 0; i < 6; ++i) {
    const auto read = parseLine(toLine(odd));
    ASSERT_TRUE(read) << read.error().message();
    history.push_back(*read);
  }
  EXPECT_EQ(compare(odd, history).ratio, 1);
}

TEST(ProbeHistory, OldRunsAreForgottenAndTheCauseIsTold) {
  std::vector<ProbeRecord> history(500, record(100));
  history.insert(history.end(), mostHistory, record(1));
  EXPECT_DOUBLE_EQ(compare(record(2, 0.5), history).ratio, 2);
  EXPECT_NE(compare(record(2, 0.5), history).text.find("communication is slow"), std::string::npos);
  EXPECT_NE(compare(record(2, 1.5), history).text.find("computing is slow"), std::string::npos);
}

}  // namespace
}  // namespace falcon::doctor
