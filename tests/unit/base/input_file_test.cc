#include "base/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace falcon {
namespace {

using testing::HasSubstr;

class InputFile : public testing::Test {
 protected:
  InputFile() : path_(testing::TempDir() + "falcon-input-" + std::to_string(getpid())) {}
  ~InputFile() override { std::filesystem::remove(path_); }

  const std::string path_;
};

TEST_F(InputFile, IsReadWhole) {
  const std::string text(200'000, 'x');
  std::ofstream(path_) << text;
  EXPECT_EQ(*readInputFile(path_), text);
  EXPECT_FALSE(readInputFile("/proc/self/status")->empty());
}

TEST_F(InputFile, IsNeitherADeviceNorAFolder) {
  for (const std::string path : {"/dev/zero", "/tmp"}) {
    const auto read = readInputFile(path);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message(), HasSubstr(path + " is a folder or device"));
  }
}

// As the shell's <(command) gives one. A pipe that nobody writes to must not be waited for.
TEST_F(InputFile, MayBeAPipeWithAWriter) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(*readInputFile(path_), "");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string text(200'000, 'x');
  std::jthread writer([&] {
    EXPECT_EQ(write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(ends[1]);
  });
  EXPECT_EQ(*readInputFile("/proc/self/fd/" + std::to_string(ends[0])), text);
  close(ends[0]);
}

TEST_F(InputFile, HasALimitThatTheErrorNames) {
  std::ofstream(path_) << "12345";
  EXPECT_TRUE(readInputFile(path_, 5));
  const auto read = readInputFile(path_, 4);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message(), HasSubstr(path_ + " has more than 4 bytes"));
}

TEST_F(InputFile, ThatIsNotThereIsNamed) {
  EXPECT_THAT(readInputFile(path_).error().message(), HasSubstr(path_ + " cannot be opened: No such file"));
}

}  // namespace
}  // namespace falcon
