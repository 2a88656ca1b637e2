// The page of a job, from the files that it leaves.
#include "support/job_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/own_folder.h"
#include "instrument/call_log.h"
#include "instrument/events_path.h"
#include "report/json_lines.h"

namespace falcon::support {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

/// Ranks 0 to 3 of a job, two replicas of two stages, that have made some calls.
class JobPage : public testing::Test {
 protected:
  JobPage() {
    EXPECT_TRUE(makeOwnFolder(instrument::jobsFolder()));
    EXPECT_TRUE(makeOwnFolder(folder_));
    EXPECT_TRUE(makeOwnFolder(elsewhere_));
    const Nanoseconds now = SystemClock::instance().now();
    for (Rank rank = 0; rank < 4; ++rank) {
      auto log = std::move(*instrument::CallLog::create(folder_ + "/rank-" + std::to_string(rank) + ".calls",
                                                        {name_, "host", rank, 4}, 1024));
      const int data = log->add({.id = CommunicatorId(10 + rank % 2),
                                 .rank = rank / 2,
                                 .name = "",
                                 .members = {{rank % 2, 0}, {rank % 2 + 2, 0}}});
      const int world =
          log->add({.id = 1, .rank = rank, .name = "everybody", .members = {{0, 0}, {1, 0}, {2, 0}, {3, 0}}});
      for (int i = 0; i < 20; ++i) {
        record(*log, CommunicatorId(10 + rank % 2), rank / 2, data, i, now + i * 100ms);
        record(*log, 1, rank, world, i, now + i * 100ms + 50ms);
      }
      logs_.push_back(std::move(log));
    }
  }
  ~JobPage() override {
    fs::remove_all(folder_);
    fs::remove_all(elsewhere_);
  }

  static void record(instrument::CallLog& log, CommunicatorId id, Rank rank, int place, int sequence,
                     Nanoseconds enter) {
    CallRecord call;
    call.operation = Operation::allReduce;
    call.communicator = id;
    call.rank = rank;
    call.sequence = static_cast<std::uint64_t>(sequence);
    call.enter = enter;
    const auto flight = log.enter(call, place);
    call.leave = enter + 20ms;
    log.leave(flight, call);
  }
  static void write(const std::string& path, const std::string& text, int severity = 0) {
    std::ofstream(path) << report::toJson({.kind = EventKind::onset, .severity = severity, .text = text}) << '\n';
  }
  report_page::Page page() const {
    auto jobs = jobs::findJobs();
    jobs::keepNamed(jobs, name_);
    EXPECT_EQ(jobs.size(), 1u);
    return pageOf(jobs.front());
  }
  std::vector<std::string> told() const {
    std::vector<std::string> texts;
    for (const auto& mark : page().marks) texts.push_back(mark.text);
    return texts;
  }

  const std::string name_ = "falcon-page-" + std::to_string(getpid());
  const std::string folder_ = instrument::jobFolder(name_);
  const std::string elsewhere_ = fs::temp_directory_path() / name_;
  const std::string file_ = elsewhere_ + "/events.jsonl";
  std::vector<std::unique_ptr<instrument::CallLog>> logs_;
};

TEST_F(JobPage, HasTheEventsWhereverTheyAre) {
  write(folder_ + "/events.jsonl", "in the folder");
  EXPECT_THAT(told(), ElementsAre("in the folder"));
  ASSERT_TRUE(instrument::noteEventsPath(folder_, file_));
  write(report::rotatedName(file_, 1), "older");
  write(file_, "elsewhere", 3);
  EXPECT_THAT(told(), ElementsAre("older", "elsewhere"));
  EXPECT_EQ(page().marks.at(1).severity, 3);
  EXPECT_EQ(page().eventsNote, "");
  auto jobs = jobs::findJobs();
  jobs::keepNamed(jobs, name_);
  EXPECT_THAT(jobs.at(0).lastEvent, HasSubstr("elsewhere"));
}

TEST_F(JobPage, SaysWhereTheEventsAreThatCannotBeRead) {
  ASSERT_TRUE(instrument::noteEventsPath(folder_, file_));
  EXPECT_THAT(page().eventsNote, HasSubstr(file_));
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);  // somebody else reads it: nothing is taken from it, nor waited for
  EXPECT_THAT(page().eventsNote, HasSubstr(file_));
  EXPECT_TRUE(page().marks.empty());
}

TEST_F(JobPage, CallsCommunicatorsByWhatTheyAre) {
  const auto shown = page();
  ASSERT_TRUE(shown.heat);
  EXPECT_THAT(shown.heat->columns, testing::IsSupersetOf({"AllReduce, data parallel 0", "AllReduce, data parallel 1",
                                                          "AllReduce, whole job \"everybody\""}))
      << shown.heat->note;
  EXPECT_THAT(shown.heat->legend, testing::Contains("data parallel 1: ranks 1, 3"));
}

}  // namespace
}  // namespace falcon::support
