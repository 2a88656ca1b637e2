// `falcon demo` when it cannot finish: what it started ends with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "machine/processes.h"
#include "multi_rank/run_harness.h"

namespace falcon::tests {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

bool isTraining(pid_t process) {
  return contentOf("/proc/" + std::to_string(process) + "/comm") == "falcon-train\n";
}

class DemoEnded : public testing::TestWithParam<int> {};

TEST_P(DemoEnded, TakesItsJobWithIt) {
  if (!fs::exists(fs::path(falconCommand({})[0]).parent_path() / "falcon-train"))
    GTEST_SKIP() << "falcon-train is not built here";
  const int signal = GetParam();
  TemporaryFolder folder;
  fs::create_directory(folder.file("temporary"));
  Started demo(falconCommand({"demo", "--seconds", "60", "--report", folder.file("report.html")}),
               {{"TMPDIR", folder.file("temporary")}});
  std::set<pid_t> job;
  ASSERT_TRUE(eventually([&] {
    job = tools::descendantsOf(demo.process());
    return std::count_if(job.begin(), job.end(), isTraining) == 8;
  })) << demo.errors();

  demo.signal(signal);
  EXPECT_EQ(demo.wait(), 128 + signal) << demo.errors();
  for (const pid_t process : job) EXPECT_TRUE(eventually([&] { return !isAlive(process); })) << process;
  if (signal != SIGKILL) {
    EXPECT_TRUE(fs::is_empty(folder.file("temporary")));
  }
  EXPECT_FALSE(fs::exists(folder.file("report.html")));
}
INSTANTIATE_TEST_SUITE_P(Signals, DemoEnded, testing::Values(SIGINT, SIGTERM, SIGHUP, SIGKILL));

TEST(Demo, RefusesAReportThatHasNoPlaceBeforeItStarts) {
  Started demo(falconCommand({"demo", "--report", "/no/such/folder/a.html"}));
  EXPECT_EQ(demo.wait(), 2);
  EXPECT_THAT(demo.errors(), HasSubstr("/no/such/folder/a.html"));
}

}  // namespace
}  // namespace falcon::tests
