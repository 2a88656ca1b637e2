#include "control/unended_job.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "report/json_lines.h"

namespace falcon::control {
namespace {

const std::string job = "this \"one\"";

std::string lineOf(const std::string& whose, EventKind kind, double wallTime, const std::string& text = "") {
  return report::toJson({.kind = kind, .wallTime = wallTime, .text = text}, whose) + "\n";
}
std::string line(EventKind kind, double wallTime, const std::string& text = "") {
  return lineOf(job, kind, wallTime, text);
}

TEST(UnendedJob, IsNotToldByThoseOfOtherJobsInTheSameFile) {
  const std::string started = line(EventKind::jobStarted, 100), ended = line(EventKind::jobEnded, 200);
  const std::string othersStart = lineOf("other", EventKind::jobStarted, 150),
                    othersEnd = lineOf("other", EventKind::jobEnded, 250);
  EXPECT_EQ(tellsOfUnendedJob(started + othersStart + othersEnd, job, 50), true);
  EXPECT_EQ(tellsOfUnendedJob(started + othersStart + ended, job, 50), false);
  EXPECT_EQ(tellsOfUnendedJob(othersStart + started + ended + othersStart, job, 50), false);
  EXPECT_EQ(tellsOfUnendedJob(othersStart, job, 50), std::nullopt);
  EXPECT_EQ(tellsOfUnendedJob(lineOf("", EventKind::jobStarted, 100), job, 50), true) << "of an earlier release";
}

TEST(UnendedJob, IsToldByTheNewestLineThatTellsOfAStartOrAnEnd) {
  const std::string started = line(EventKind::jobStarted, 100), ended = line(EventKind::jobEnded, 200),
                    off = line(EventKind::switchedOff, 200), onset = line(EventKind::onset, 150);
  EXPECT_EQ(tellsOfUnendedJob("", job, 0), std::nullopt);
  EXPECT_EQ(tellsOfUnendedJob(onset, job, 0), std::nullopt);
  EXPECT_EQ(tellsOfUnendedJob(started, job, 50), true);
  EXPECT_EQ(tellsOfUnendedJob(started + onset, job, 100), true);
  EXPECT_EQ(tellsOfUnendedJob(started + onset + "{\"v\":1,\"ki", job, 50), true) << "of who died while it wrote";
  EXPECT_EQ(tellsOfUnendedJob(started + onset, job, 100.5), false) << "an earlier job's";
  EXPECT_EQ(tellsOfUnendedJob(started + ended, job, 50), false);
  EXPECT_EQ(tellsOfUnendedJob(started + off + onset, job, 50), false);
  EXPECT_EQ(tellsOfUnendedJob(ended + started, job, 50), true);
}

TEST(UnendedJob, IsNotToldByWhatATextQuotes) {
  const std::string quotes = line(EventKind::onset, 150, R"({"kind":"job-ended","wall_time_s":1})");
  EXPECT_EQ(tellsOfUnendedJob(quotes, job, 0), std::nullopt);
  EXPECT_EQ(tellsOfUnendedJob(line(EventKind::jobStarted, 100) + quotes, job, 50), true);
}

TEST(UnendedJob, IsLookedForInOlderFilesToo) {
  const std::string path = testing::TempDir() + "falcon-unended-" + std::to_string(getpid());
  EXPECT_FALSE(hasUnendedJob(path, job, 0));
  std::ofstream(report::rotatedName(path, 1)) << line(EventKind::jobStarted, 100);
  EXPECT_FALSE(hasUnendedJob(path, job, 50)) << "the newest is always there";
  std::ofstream(path) << line(EventKind::onset, 150);
  EXPECT_TRUE(hasUnendedJob(path, job, 50));
  std::ofstream(path, std::ios::app) << line(EventKind::jobEnded, 200);
  EXPECT_FALSE(hasUnendedJob(path, job, 50));
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(hasUnendedJob(path, job, 50)) << "and nobody waits for what comes out of a pipe";
  std::filesystem::remove(path);
  std::filesystem::remove(report::rotatedName(path, 1));
}

}  // namespace
}  // namespace falcon::control
