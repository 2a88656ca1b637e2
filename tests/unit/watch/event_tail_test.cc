#include "events/event_tail.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "report/json_lines.h"

namespace falcon::events {
namespace {

namespace fs = std::filesystem;

class EventTailTest : public testing::Test {
 protected:
  EventTailTest() { fs::create_directories(folder_); }
  ~EventTailTest() override { fs::remove_all(folder_); }

  void append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }
  void writeEvents(report::JsonLinesSink& sink, int from, int to) const {
    for (int i = from; i < to; ++i) {
      Event event;
      event.iteration = i;
      sink.add(event);
    }
  }
  static std::vector<int> iterationsOf(const std::vector<std::string>& lines) {
    std::vector<int> all;
    for (const std::string& line : lines) {
      const std::string key = "\"iteration\":";
      all.push_back(std::atoi(line.c_str() + line.find(key) + key.size()));
    }
    return all;
  }
  static std::vector<int> range(int from, int to) {
    std::vector<int> all;
    for (int i = from; i < to; ++i) all.push_back(i);
    return all;
  }

  const fs::path folder_ = fs::temp_directory_path() / ("falcon-tail-" + std::to_string(getpid()));
  const std::string path_ = folder_ / "events.jsonl";
};

using Lines = std::vector<std::string>;

TEST_F(EventTailTest, GivesEveryLineOnceWhenItIsWhole) {
  EventTail tail(path_, true);
  EXPECT_EQ(tail.take(), Lines{});
  append("one\ntw");
  EXPECT_EQ(tail.take(), Lines{"one"});
  EXPECT_EQ(tail.take(), Lines{});
  append("o\n\nthree\n");
  EXPECT_EQ(tail.take(), (Lines{"two", "three"}));
}

TEST_F(EventTailTest, BeginsAtTheEndUnlessAskedForAll) {
  append("old\n");
  EventTail news(path_, false), all(path_, true);
  append("new\n");
  EXPECT_EQ(news.take(), Lines{"new"});
  EXPECT_EQ(all.take(), (Lines{"old", "new"}));
}

TEST_F(EventTailTest, PassesOverLinesOfOtherJobs) {
  const auto of = [](int iteration, const std::string& job) {
    Event event;
    event.iteration = iteration;
    event.text = R"(quotes ,"job":"other")";
    return report::toJson(event, job) + "\n";
  };
  append(of(1, "mine") + of(2, "other") + of(3, "") + of(4, "mine too") + of(5, "mine"));
  EXPECT_EQ(iterationsOf(allEvents(path_, "mine")), (std::vector<int>{1, 3, 5})) << "and those that name none";
  EXPECT_EQ(iterationsOf(allEvents(path_)), range(1, 6));
}

TEST_F(EventTailTest, AFileThatComesLaterIsReadFromItsStart) {
  EventTail tail(path_, false);
  append("first\n");
  EXPECT_EQ(tail.take(), Lines{"first"});
}

TEST_F(EventTailTest, FollowsRotation) {
  auto sink = report::JsonLinesSink::open(path_, 400);  // a few events a file
  ASSERT_TRUE(sink);
  EventTail tail(path_, true);
  for (int i = 100; i < 200; i += 4) {  // more than a whole file between two looks
    writeEvents(*sink, i, i + 4);
    EXPECT_EQ(iterationsOf(tail.take()), range(i, i + 4));
  }
  EXPECT_EQ(iterationsOf(allEvents(path_)).back(), 199);
}

TEST_F(EventTailTest, AfterMoreThanIsKeptGoesOnWithTheOldestThatIsThere) {
  auto sink = report::JsonLinesSink::open(path_, 400);
  ASSERT_TRUE(sink);
  writeEvents(*sink, 100, 101);
  EventTail tail(path_, true);
  EXPECT_EQ(iterationsOf(tail.take()), range(100, 101));
  writeEvents(*sink, 101, 200);
  const auto seen = iterationsOf(tail.take());
  ASSERT_GT(seen.size(), 3u);
  int holes = 0;
  for (std::size_t i = 1; i < seen.size(); ++i) {
    EXPECT_GT(seen[i], seen[i - 1]);
    holes += seen[i] != seen[i - 1] + 1;
  }
  EXPECT_EQ(seen.front(), 101) << "the file that it had open is read to its end, wherever it is now";
  EXPECT_EQ(seen.back(), 199);
  EXPECT_EQ(holes, 1);
}

}  // namespace
}  // namespace falcon::events
