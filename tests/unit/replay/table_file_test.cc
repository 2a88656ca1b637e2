#include "replay/table_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <sstream>

namespace falcon::replay {
namespace {

using testing::HasSubstr;

std::vector<Recorded> times(const std::string& text) {
  std::istringstream stream(text);
  return readTimes(stream, "a.csv");
}
std::vector<Episode> episodes(const std::string& text) {
  std::istringstream stream(text);
  return readEpisodes(stream, "b.csv");
}

std::string errorOf(const std::string& text) {
  try {
    times(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

TEST(TimesFile, FindsColumnsByName) {
  const auto rows = times("rank,elapsed_ms,note,iteration\n3,12.5,x,7\n3,13,,8\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].iteration, 7);
  EXPECT_DOUBLE_EQ(rows[0].milliseconds, 12.5);
  EXPECT_EQ(rows[1].iteration, 8);
  EXPECT_DOUBLE_EQ(rows[1].milliseconds, 13);
}

TEST(TimesFile, TakesOtherNamesAndUnits) {
  EXPECT_DOUBLE_EQ(times("step,ms\n1,5\n").at(0).milliseconds, 5);
  EXPECT_DOUBLE_EQ(times("iteration_time_s\n0.25\n").at(0).milliseconds, 250);
  EXPECT_EQ(times("ms\n5\n6\n").at(1).iteration, 2);  // rows count from 1
}

TEST(TimesFile, MindsNeitherBlanksNorOtherLineEnds) {
  const auto rows = times("\xef\xbb\xbf\"iteration\" , elapsed_ms\r\n 1 , 1e2 \r\n\r\n2,\"3.5\"\r\n\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_DOUBLE_EQ(rows[0].milliseconds, 100);
  EXPECT_DOUBLE_EQ(rows[1].milliseconds, 3.5);
}

TEST(TimesFile, KnowsQuotedCells) {
  const auto rows =
      times("links,iteration,elapsed_ms\n\"0-1, 5-6\",1,100\n \"a \"\"b\"\", c\" ,2,\"101\"\n\"two\nlines\",3,102\n");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].iteration, 2);
  EXPECT_DOUBLE_EQ(rows[1].milliseconds, 101);
  EXPECT_EQ(rows[2].iteration, 3);
  EXPECT_EQ(episodes("start,links,end\n81,\"0-1, 5-6\",141\n").at(0).end, 141);
  EXPECT_THAT(errorOf("note,ms\n\"two\nlines\",5\nx,fast\n"), HasSubstr("a.csv:4: ms is 'fast'"));
  EXPECT_THAT(errorOf("note,ms\nx,5\n\"open,6\n7,7\n"), HasSubstr("a.csv:3: a quotation mark is not closed"));
}

TEST(TimesFile, TakesSemicolonsAndTabs) {
  for (const std::string text : {"note;iteration;elapsed_ms\n\"a;b, c\" ; 7;12.5\n;8;13\n",
                                 "note\titeration\telapsed_ms\na;b, c\t 7\t12.5\n\t8\t13\r\n"}) {
    const auto rows = times(text);
    ASSERT_EQ(rows.size(), 2u) << text;
    EXPECT_EQ(rows[0].iteration, 7);
    EXPECT_DOUBLE_EQ(rows[0].milliseconds, 12.5);
    EXPECT_EQ(rows[1].iteration, 8);
    EXPECT_DOUBLE_EQ(rows[1].milliseconds, 13);
  }
  EXPECT_EQ(episodes("start;end\n81;141\n").at(0).end, 141);
  EXPECT_THAT(errorOf("step;ms\n1;12,5\n"), HasSubstr("a.csv:2: ms is '12,5', which is not a number"));
}

TEST(TimesFile, SaysWhichLineAndValueIsWrong) {
  EXPECT_THAT(errorOf("iteration,elapsed_ms\n1,5\n2,fast\n"), HasSubstr("a.csv:3: elapsed_ms is 'fast'"));
  EXPECT_THAT(errorOf("iteration,elapsed_ms\n1,0\n"), HasSubstr("'0', which is not above 0"));
  EXPECT_THAT(errorOf("iteration,elapsed_ms\n1\n"), HasSubstr("a.csv:2: there are 1 values"));
  EXPECT_THAT(errorOf("iteration,elapsed_ms\n1.5,5\n"), HasSubstr("iteration is '1.5'"));
  EXPECT_THAT(errorOf("iteration,elapsed_ms\n2,5\n2,5\n"), HasSubstr("a.csv:3: iteration 2 does not come after 2"));
  EXPECT_THAT(errorOf("iteration,bytes\n1,5\n"),
              HasSubstr("no column is called elapsed_ms, iteration_ms, iteration_time_ms, time_ms, duration_ms, "
                        "milliseconds, ms, or elapsed_s, iteration_s, iteration_time_s, time_s, duration_s, seconds, "
                        "s; the columns are iteration, bytes"));
  EXPECT_THAT(errorOf(""), HasSubstr("a.csv is empty; a header line"));
}

TEST(TimesFile, LeavesOutRowsWithoutAValueButCountsThem) {
  testing::internal::CaptureStderr();
  const auto rows = times("elapsed_s\n1\nNaN\n2\n\"\"\n-inf\n1e308\n3\n");
  const std::string warning = testing::internal::GetCapturedStderr();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].iteration, 3);
  EXPECT_EQ(rows[2].iteration, 7);
  EXPECT_DOUBLE_EQ(rows[2].milliseconds, 3000);
  EXPECT_EQ(warning, "falcon: a.csv: 4 rows without a finite value are left out, the first in line 3\n");
}

TEST(TimesFile, KeepsTheIterationsOfTheFileWhereRowsAreLeftOut) {
  const auto rows = times("iteration,elapsed_ms\n1,5\n2,\n,7\n9,6\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].iteration, 9);
}

TEST(TimesFile, MindsNoCaseInNamesAndTakesTheFirstNameOfTheList) {
  const auto rows = times(" Seconds , time_MS,\" Elapsed_ms \",STEP\n1,2,3,4\n");
  EXPECT_EQ(rows.at(0).iteration, 4);
  EXPECT_DOUBLE_EQ(rows[0].milliseconds, 3);
}

TEST(TimesFile, TakesLinesWithANumberSignForComments) {
  EXPECT_EQ(times("\xef\xbb\xbf# a run\nms\n5\n#6\n7\n").size(), 2u);
  EXPECT_THAT(errorOf("# a run\nms\n5\n#6\nx\n"), HasSubstr("a.csv:5: ms is 'x'"));
}

TEST(TimesFile, ShowsControlBytesEscaped) {
  EXPECT_THAT(errorOf("ms\n\x1b[2J\x07\n"), HasSubstr("ms is '\\x1b[2J\\x07', which"));
}

TEST(TimesFile, LooksAtEveryByteOnceWhereACellHasManyQuotes) {
  // Looked at again after each line this takes minutes.
  std::string text = "note,ms\n\"";
  for (int line = 0; line < 200'000; ++line) text += "\"\"\n";
  const std::clock_t started = std::clock();  // the processor's time: a busy machine makes it no longer
  EXPECT_EQ(times(text + "\",5\n").size(), 1u);
  EXPECT_LT(std::clock() - started, 5 * CLOCKS_PER_SEC);
}

TEST(TimesFile, CanBeSetAgainstTheWork) {
  std::istringstream stream("iteration,elapsed_ms,tokens\n1,10,4096\n2,21,8192\n"), bad("ms,tokens\n5,0\n");
  const auto rows = readTimes(stream, "a.csv", "tokens");
  EXPECT_DOUBLE_EQ(rows.at(0).milliseconds, 10);
  EXPECT_DOUBLE_EQ(rows.at(1).milliseconds, 10.5);
  EXPECT_THROW(readTimes(bad, "a.csv", "tokens"), std::runtime_error);
}

TEST(EpisodesFile, IsReadByNameToo) {
  const auto read = episodes("start_iteration,end_iteration,slow_pipeline_links\n15,85,2-3\n120,190,0-1 5-6\n");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[1].start, 120);
  EXPECT_EQ(read[1].end, 190);
  EXPECT_THROW(episodes("start_iteration,end_iteration\n5,5\n"), std::runtime_error);
  EXPECT_THROW(episodes("start_iteration\n5\n"), std::runtime_error);
  EXPECT_TRUE(episodes("start,end\n").empty());
}

}  // namespace
}  // namespace falcon::replay
