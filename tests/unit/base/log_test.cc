#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "base/log_file.h"
#include "base/log_receiver.h"
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

TEST(Log, GoesToWhoeverItIsHandedOverTo) {
  static std::vector<std::pair<log::Level, std::string>> got;
  EXPECT_EQ(logged(nullptr,
                   [] {
                     log::handOver([](log::Level level, std::string_view text) { got.emplace_back(level, text); });
                     log::info("shown or not, that is another's to say: {}", 1);
                     log::warn("careful");
                     log::trace("nobody wants this");
                     log::handOver(nullptr);
                     log::info("here again, where it is not shown");
                   }),
            "");
  EXPECT_THAT(got, testing::ElementsAre(
                       std::make_pair(log::Level::info, std::string("shown or not, that is another's to say: 1")),
                       std::make_pair(log::Level::warn, std::string("careful"))));
}

TEST(Log, IsOneLineAndCommandsNoTerminalWhateverIsNamed) {
  EXPECT_THAT(logged("INFO", [] { log::info("communicator {}", "a\n\x1b[2J\xff"); }),
              testing::EndsWith("NCCL INFO communicator a\\x0a\\x1b[2J\xef\xbf\xbd\n"));
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

TEST(Log, KnowsWhichWordsAreNoLevels) {
  for (const char* level : {"", "version", "Warn", "INFO", "ABORT", "TRACE"}) {
    const Variable debug("NCCL_DEBUG", level);
    EXPECT_EQ(log::unknownLevel(), std::nullopt) << level;
  }
  const Variable debug("NCCL_DEBUG", "ERROR");
  EXPECT_EQ(log::unknownLevel(), "ERROR");
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
}

std::string contentOf(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Log, WhoHasNothingToSayLeavesNoFileAndKeepsNoOldLines) {
  const std::string path = testing::TempDir() + "falcon-silent-" + std::to_string(getpid()), ours = path + ".falcon";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Variable debug("NCCL_DEBUG", "WARN"), file("NCCL_DEBUG_FILE", path.c_str());
    log::reset();
    log::info("not at this level");
    log::makeRoomForVendor();
    log::info("nor beside the vendor's");
    std::ofstream(ours) << "of an earlier run\n";
    log::reset();
    const Variable other("NCCL_DEBUG_FILE", (path + "-other").c_str());
    log::info("nor into another");
    log::reset();
    const Variable again("NCCL_DEBUG_FILE", path.c_str());
    log::info("nor here");
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  for (const std::string& each : {path, path + "-other", path + "-other.falcon"})
    EXPECT_NE(access(each.c_str(), F_OK), 0) << each;
  EXPECT_EQ(contentOf(ours), "");
  unlink(ours.c_str());
}

// NCCL empties the file when it logs its first line, and writes from where it is.
TEST(Log, MakesRoomForTheVendorsLinesAndLosesNone) {
  const std::string path = testing::TempDir() + "falcon-beside-" + std::to_string(getpid()), ours = path + ".falcon";
  for (const bool stale : {false, true}) {
    if (stale) std::ofstream(ours) << "of an earlier run\n";
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const Variable debug("NCCL_DEBUG", "INFO"), file("NCCL_DEBUG_FILE", path.c_str());
      log::reset();
      log::info("before");
      log::makeRoomForVendor();
      std::ofstream vendors(path);
      vendors << "the vendor's first" << std::endl;
      log::info("after");
      log::makeRoomForVendor();
      log::info("and again");
      vendors << "the vendor's second" << std::endl;
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    EXPECT_EQ(contentOf(path), "the vendor's first\nthe vendor's second\n");
    EXPECT_THAT(contentOf(ours),
                MatchesRegex("[^\n]+ NCCL INFO before\n[^\n]+ NCCL INFO after\n[^\n]+ NCCL INFO and again\n"));
    unlink(path.c_str());
    unlink(ours.c_str());
  }
}

TEST(Log, SharesDevicesAndPipesWithTheVendor) {
  EXPECT_EQ(log::besideVendors("/tmp/log"), "/tmp/log.falcon");
  EXPECT_EQ(log::besideVendors("/dev/shm/log"), "/dev/shm/log.falcon");
  for (const char* path : {"/dev/stderr", "/dev/null", "/proc/self/fd/1"}) EXPECT_EQ(log::besideVendors(path), path);
  const std::string pipe = testing::TempDir() + "falcon-pipe-" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(log::besideVendors(pipe), pipe);
  unlink(pipe.c_str());
}

// The child has no other thread: whatever lock one of them held at that moment would be held for ever.
TEST(Log, AChildForkedWhileOthersLogCanLogToo) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers' own locks do not survive a fork of a process with busy threads";
#endif
  const std::string path = testing::TempDir() + "falcon-fork-" + std::to_string(getpid());
  const Variable debug("NCCL_DEBUG", "INFO"), file("NCCL_DEBUG_FILE", path.c_str());
  log::reset();
  log::info("the parent opens the file");
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 3; ++i)
    busy.emplace_back([&] {
      while (!stop) {
        log::info("busy");
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    });

  constexpr int children = 50;
  int ended = 0;
  for (int i = 0; i < children; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);  // ends a child that hangs
      if (i % 2 == 1) log::reset();
      log::info("child {} of {}", i, children);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status)) break;
    ++ended;
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
  EXPECT_EQ(ended, children) << "a child hung at its first line";

  std::set<std::string> said;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, testing::ContainsRegex(":[0-9]+:[0-9]+ \\[-1\\] NCCL INFO ")) << "lines are mixed";
    if (const auto at = line.find("child "); at != std::string::npos) said.insert(line.substr(at));
  }
  EXPECT_EQ(said.size(), static_cast<std::size_t>(ended)) << "a child emptied the file, or wrote elsewhere";
  unlink(path.c_str());
  log::reset();
}

}  // namespace
}  // namespace falcon
