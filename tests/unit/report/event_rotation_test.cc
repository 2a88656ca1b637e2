#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/signals_blocked.h"
#include "report/json_lines.h"

namespace falcon::report {
namespace {

namespace fs = std::filesystem;

class EventRotation : public testing::Test {
 protected:
  EventRotation() { fs::create_directories(folder_); }
  ~EventRotation() override { fs::remove_all(folder_); }

  static Event numbered(int number) {
    Event event;
    event.iteration = number;
    event.text = "twelve bytes";
    return event;
  }
  static std::vector<std::string> linesOf(const std::string& path) {
    std::vector<std::string> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  const fs::path folder_ = fs::temp_directory_path() / ("falcon-rotation-" + std::to_string(getpid()));
  const std::string path_ = folder_ / "events.jsonl";
  const std::int64_t lineBytes_ = static_cast<std::int64_t>(toJson(numbered(10)).size()) + 1;
};

TEST_F(EventRotation, KeepsTheNewestEventsInOrderAndNoFileTooLong) {
  auto sink = JsonLinesSink::open(path_, lineBytes_ * 5);
  ASSERT_TRUE(sink);
  for (int i = 10; i < 99; ++i) sink->add(numbered(i));
  std::vector<std::string> kept;
  for (int age = eventFilesKept; age >= 0; --age) {
    const std::string file = age > 0 ? rotatedName(path_, age) : path_;
    EXPECT_LE(fs::file_size(file), static_cast<std::uintmax_t>(lineBytes_ * 5)) << file;
    for (const std::string& line : linesOf(file)) kept.push_back(line);
  }
  EXPECT_EQ(kept.size(), 19u);  // 4 in the newest, 5 in each of the older ones
  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(kept[i], toJson(numbered(static_cast<int>(98 - (kept.size() - 1 - i)))));
  EXPECT_FALSE(fs::exists(rotatedName(path_, eventFilesKept + 1)));
}

/// What is logged while `function` runs.
template <class Function>
std::string logged(Function function) {
  testing::internal::CaptureStderr();
  function();
  return testing::internal::GetCapturedStderr();
}

std::size_t linesIn(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST_F(EventRotation, AFolderThatIsGoneIsSaidOnce) {
  auto sink = JsonLinesSink::open(path_);
  ASSERT_TRUE(sink);
  sink->add(numbered(10));
  fs::remove_all(folder_);
  const std::string log = logged([&] {
    for (int i = 11; i < 20; ++i) sink->add(numbered(i));
  });
  EXPECT_NE(log.find(path_), std::string::npos) << log;
  EXPECT_EQ(linesIn(log), 1u) << log;
}

// It was put there by whoever could write to the folder before it was closed to others.
TEST_F(EventRotation, InAnOwnFolderNoLinkIsFollowedAndNoStrangersFileIsTaken) {
  using Place = JsonLinesSink::Place;
  const std::string target = folder_ / "precious";
  { std::ofstream(target) << "precious"; }
  fs::create_symlink(target, path_);
  const auto link = JsonLinesSink::open(path_, 0, Place::ownFolder);
  ASSERT_FALSE(link);
  EXPECT_NE(link.error().message().find(path_ + " is a link, and is not trusted"), std::string::npos);
  EXPECT_EQ(fs::file_size(target), 8u);
  EXPECT_TRUE(JsonLinesSink::open(path_, 0, Place::anywhere)) << "as the user wants it";
  fs::remove(path_);
  EXPECT_TRUE(JsonLinesSink::open(path_, 0, Place::ownFolder));
  if (getuid() != 0) return;
  ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  const auto strangers = JsonLinesSink::open(path_, 0, Place::ownFolder);
  ASSERT_FALSE(strangers);
  EXPECT_NE(strangers.error().message().find("belongs to user 12345"), std::string::npos);
}

TEST_F(EventRotation, APipeKeepsNobodyWaiting) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(JsonLinesSink::open(path_)) << "nobody reads it";
  const FileDescriptor reader(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  auto sink = JsonLinesSink::open(path_);
  ASSERT_TRUE(sink);
  // Far more than a pipe holds.
  const std::string log = logged([&] {
    for (int i = 0; i < 20'000; ++i) sink->add(numbered(i));
  });
  EXPECT_EQ(linesIn(log), 1u) << log;
}

TEST_F(EventRotation, AFullDiskSpoilsOneLineAndIsSaidOnce) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const SignalsBlocked asOnAThreadOfTheLibrary;
  auto sink = JsonLinesSink::open(path_);
  ASSERT_TRUE(sink);
  for (int i = 10; i < 59; ++i) sink->add(numbered(i));
  const rlimit small{static_cast<rlim_t>(lineBytes_ * 50 - 7), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string log = logged([&] {
    sink->add(numbered(59));
    sink->add(numbered(60));
  });
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  sink->add(numbered(61));
  const timespec now{};
  sigset_t tooLarge;
  sigemptyset(&tooLarge);
  sigaddset(&tooLarge, SIGXFSZ);
  sigtimedwait(&tooLarge, nullptr, &now);
  EXPECT_EQ(linesIn(log), 1u) << log;
  const auto lines = linesOf(path_);
  ASSERT_EQ(lines.size(), 51u);
  EXPECT_EQ(lines[48], toJson(numbered(58)));
  EXPECT_EQ(lines[50], toJson(numbered(61)));
}

TEST_F(EventRotation, ZeroMeansNever) {
  auto sink = JsonLinesSink::open(path_, 0);
  ASSERT_TRUE(sink);
  for (int i = 10; i < 99; ++i) sink->add(numbered(i));
  EXPECT_EQ(linesOf(path_).size(), 89u);
  EXPECT_FALSE(fs::exists(rotatedName(path_, 1)));
}

TEST_F(EventRotation, AWriterFollowsWhereAnotherMovedTheFile) {
  auto one = JsonLinesSink::open(path_, lineBytes_ * 2), other = JsonLinesSink::open(path_, lineBytes_ * 2);
  ASSERT_TRUE(one && other);
  for (int i = 10; i < 13; ++i) one->add(numbered(i));
  other->add(numbered(13));
  EXPECT_EQ(linesOf(path_), (std::vector<std::string>{toJson(numbered(12)), toJson(numbered(13))}));
  EXPECT_EQ(linesOf(rotatedName(path_, 1)).size(), 2u);
}

TEST_F(EventRotation, WhatIsNoFileIsNotMoved) {
  auto sink = JsonLinesSink::open("/dev/null", 1);
  ASSERT_TRUE(sink);
  sink->add(numbered(10));
  EXPECT_FALSE(fs::exists("/dev/null.1"));
}

}  // namespace
}  // namespace falcon::report
