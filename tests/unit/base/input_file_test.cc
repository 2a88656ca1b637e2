#include "base/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

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

TEST_F(InputFile, IsNeitherAPipeNorADeviceNorAFolder) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  for (const std::string& path : {path_, std::string("/dev/zero"), std::string("/tmp")}) {
    const auto read = readInputFile(path);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message(), HasSubstr(path + " is no regular file"));
  }
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
