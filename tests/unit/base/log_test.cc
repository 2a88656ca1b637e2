#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include "unit/base/environment.h"

namespace falcon {
namespace {

using testing::MatchesRegex;

/// What is written to stderr while NCCL_DEBUG is `level`.
template <class Function>
std::string logged(const char* level, Function function) {
  const Variable debug("NCCL_DEBUG", level), file("NCCL_DEBUG_FILE", nullptr);
  log::reset();
  testing::internal::CaptureStderr();
  function();
  std::string text = testing::internal::GetCapturedStderr();
  log::reset();
  return text;
}

TEST(Log, HasTheLineFormatOfNccl) {
  EXPECT_THAT(logged("INFO", [] { log::info("ring {} of {}", 0, 2); }),
              MatchesRegex("[^:. ]+:[0-9]+:[0-9]+ \\[-1\\] NCCL INFO ring 0 of 2\n"));
  EXPECT_THAT(logged("WARN", [] { log::warn("careful"); }), MatchesRegex("[^ ]+ \\[-1\\] NCCL WARN careful\n"));
}

TEST(Log, ObeysItsLevel) {
  const auto all = [] {
    log::warn("w");
    log::info("i");
    log::trace("t");
  };
  const auto lines = [&](const char* level) {
    const std::string text = logged(level, all);
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(nullptr), 0);
  EXPECT_EQ(lines("nonsense"), 0);
  EXPECT_EQ(lines("VERSION"), 0);
  EXPECT_EQ(lines("WARN"), 1);
  EXPECT_EQ(lines("info"), 2);
  EXPECT_EQ(lines("TRACE"), 3);
}

TEST(Log, ShowsNoticesWhateverTheLevel) {
  EXPECT_THAT(logged(nullptr, [] { log::notice("feature {} is off", "x"); }),
              testing::EndsWith("NCCL WARN feature x is off\n"));
}

TEST(Log, KeepsTheLastErrorOfEachThread) {
  const std::string text = logged("WARN", [] {
    const Error error = log::decided(Error::invalidUsage("rank {} of {}", 4, 4));
    EXPECT_EQ(error.code(), ErrorCode::invalidUsage);
    EXPECT_STREQ(log::lastError(), "rank 4 of 4");
    std::thread([] { EXPECT_STREQ(log::lastError(), ""); }).join();
  });
  EXPECT_THAT(text, testing::EndsWith("NCCL WARN rank 4 of 4\n"));
}

TEST(Log, WritesToTheFileThatIsNamed) {
  const std::string folder = testing::TempDir();
  const std::string path = folder + "/falcon-log-" + std::to_string(getpid()) + "%";
  {
    const std::string pattern = folder + "/falcon-log-%p%%";
    const Variable debug("NCCL_DEBUG", "INFO"), file("NCCL_DEBUG_FILE", pattern.c_str());
    log::reset();
    log::info("into the file");
    log::reset();
  }
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_THAT(text.str(), testing::EndsWith("NCCL INFO into the file\n"));
  unlink(path.c_str());
  logged(nullptr, [] { log::level(); });  // lets go of the file
}

}  // namespace
}  // namespace falcon
