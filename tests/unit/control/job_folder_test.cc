#include "control/job_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "instrument/call_log.h"

namespace falcon::control {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// A job of this process, or of nobody, that was written to so long ago.
fs::path job(const std::string& name, std::chrono::minutes age, bool alive) {
  const fs::path folder = instrument::jobFolder(name);
  EXPECT_TRUE(makeJobFolder(folder));
  {
    const auto log = instrument::CallLog::create(folder / "rank-0.calls", {name, "host", 0, 1}, 64);
    EXPECT_TRUE(log);
  }
  if (!alive) fs::resize_file(folder / "rank-0.calls", 0);
  const auto then = fs::file_time_type::clock::now() - age;
  fs::last_write_time(folder / "rank-0.calls", then);
  fs::last_write_time(folder, then);
  return folder;
}

/// Where another process is at removing it, as each does that begins a job, that takes a moment.
bool isGone(const fs::path& folder) {
  for (int i = 0; i < 6000 && fs::exists(folder); ++i) std::this_thread::sleep_for(10ms);
  return !fs::exists(folder);
}

TEST(JobFolder, OldJobsGoButNotWhatLivesAndNotTheNewestFour) {
  const std::string mine = "job-folder-test-" + std::to_string(getpid()) + "-";
  const fs::path living = job(mine + "living", 48h, true);
  const fs::path ancient = job(mine + "ancient", 48h, false);
  std::vector<fs::path> ended;
  for (int i = 0; i < 6; ++i) ended.push_back(job(mine + std::to_string(i), 11min + std::chrono::minutes(i), false));
  const fs::path fresh = job(mine + "fresh", 1min, false);
  removeOldJobs();
  EXPECT_TRUE(fs::exists(living));
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_TRUE(isGone(ancient));
  // Other jobs of this user may take the four places; the oldest two have none in any case.
  EXPECT_TRUE(isGone(ended[4]));
  EXPECT_TRUE(isGone(ended[5]));
  std::error_code ignored;
  fs::remove_all(living, ignored);
  fs::remove_all(fresh, ignored);
  for (const fs::path& each : ended) fs::remove_all(each, ignored);
}

TEST(JobFolder, KnowsALivingProcessOfAnotherJobByItsCallLog) {
  const std::string folder = instrument::jobFolder("job-folder-test-" + std::to_string(getpid()) + "-rival");
  ASSERT_TRUE(makeJobFolder(folder));
  enum class Kind { lives, left, usesTheNumberAgain };
  for (const Kind kind : {Kind::lives, Kind::left, Kind::usesTheNumberAgain}) {
    const std::string path = folder + "/rank-" + std::to_string(static_cast<int>(kind)) + ".calls";
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto log = instrument::CallLog::create(path, {"job", "host", 0, 1}, 64);
      if (kind == Kind::left) (*log)->dropRecords();
      if (kind == Kind::usesTheNumberAgain) (*log)->header().startTime = 1;  // when the machine had just started
      static_cast<void>(!write(ready[1], "x", 1));
      for (;;) pause();
    }
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    const auto rival = rivalAt(path, "host");
    EXPECT_EQ(rival.value_or(0), kind == Kind::lives ? child : 0);
    EXPECT_FALSE(rivalAt(path, "another host"));
    kill(child, SIGKILL);
    siginfo_t dead{};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(child), &dead, WEXITED | WNOWAIT), 0);
    EXPECT_FALSE(rivalAt(path, "host")) << "it has died, and nobody has asked for its exit code yet";
    waitpid(child, nullptr, 0);
    EXPECT_FALSE(rivalAt(path, "host"));
    close(ready[0]);
    close(ready[1]);
  }
  const auto own = instrument::CallLog::create(folder + "/rank-9.calls", {"job", "host", 9, 10}, 64);
  EXPECT_FALSE(rivalAt(folder + "/rank-9.calls", "host"));
  EXPECT_FALSE(rivalAt(folder + "/rank-10.calls", "host"));
  fs::remove_all(folder);
}

TEST(JobFolder, IsLockedByOneAtATime) {
  const std::string folder = instrument::jobFolder("job-folder-test-" + std::to_string(getpid()) + "-locked");
  ASSERT_TRUE(makeJobFolder(folder));
  {
    const FileDescriptor first = lockJobFolder(folder);
    ASSERT_TRUE(first);
    EXPECT_FALSE(lockJobFolder(folder, 20ms));
  }
  EXPECT_TRUE(lockJobFolder(folder, 20ms));
  EXPECT_FALSE(lockJobFolder(folder + "-that-is-not", 20ms));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace falcon::control
