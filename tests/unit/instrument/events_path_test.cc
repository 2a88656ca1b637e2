#include "instrument/events_path.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace falcon::instrument {
namespace {

namespace fs = std::filesystem;

class EventsPath : public testing::Test {
 protected:
  EventsPath() { fs::create_directories(folder_); }
  ~EventsPath() override { fs::remove_all(folder_); }
  const std::string folder_ = fs::temp_directory_path() / ("falcon-events-path-" + std::to_string(getpid()));
};

TEST_F(EventsPath, IsInTheFolderUnlessItNamesAnother) {
  EXPECT_EQ(eventsPath(folder_), folder_ + "/events.jsonl");
  ASSERT_TRUE(noteEventsPath(folder_, "/var/log/a job's\nevents.jsonl"));
  EXPECT_EQ(eventsPath(folder_), "/var/log/a job's\nevents.jsonl");
  ASSERT_TRUE(noteEventsPath(folder_, ""));  // the next run of the job
  EXPECT_EQ(eventsPath(folder_), folder_ + "/events.jsonl");
  ASSERT_TRUE(noteEventsPath(folder_, ""));
}

TEST_F(EventsPath, MeansTheSameFileWhereverItIsAskedFor) {
  ASSERT_TRUE(noteEventsPath(folder_, "logs/events.jsonl"));
  EXPECT_EQ(eventsPath(folder_), (fs::current_path() / "logs/events.jsonl").string());
}

TEST_F(EventsPath, ThatCannotBeNotedIsAnError) {
  EXPECT_FALSE(noteEventsPath(folder_ + "/gone", "/tmp/events.jsonl"));
}

}  // namespace
}  // namespace falcon::instrument
