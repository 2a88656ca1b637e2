#include "base/whole_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/text.h"

namespace falcon {
namespace {

namespace fs = std::filesystem;

class WholeFile : public testing::Test {
 protected:
  WholeFile() { fs::create_directories(folder_); }
  ~WholeFile() override { fs::remove_all(folder_); }

  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder_), {}); }
  std::string file(const std::string& name) const { return folder_ / name; }

 private:
  const fs::path folder_ = testing::TempDir() + "falcon-whole-" + std::to_string(getpid());
};

TEST_F(WholeFile, IsReplacedAndLeavesNothingBeside) {
  for (const std::string content : {"one\n", "", "two\n"}) {
    ASSERT_TRUE(writeWhole(file("a"), content));
    EXPECT_EQ(readText(file("a")), content);
    EXPECT_EQ(files(), 1);
  }
}

TEST_F(WholeFile, HasTheRightsThatWereAskedFor) {
  const mode_t before = umask(022);
  for (const mode_t mode : {forThisUser, forAllToRead}) {
    ASSERT_TRUE(writeWhole(file("a"), "x", mode));
    struct stat facts {};
    ASSERT_EQ(stat(file("a").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, mode);
  }
  umask(before);
}

TEST_F(WholeFile, IsNotWrittenThroughALink) {
  ASSERT_TRUE(writeWhole(file("precious"), "old"));
  fs::create_symlink(file("precious"), file("a"));
  ASSERT_TRUE(writeWhole(file("a"), "new"));
  EXPECT_EQ(readText(file("precious")), "old");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(file("a"))));
  EXPECT_EQ(readText(file("a")), "new");
}

TEST_F(WholeFile, IsWrittenWhateverSomebodyPutWhereItsDraftsWere) {
  ASSERT_TRUE(writeWhole(file("precious"), "old"));
  const std::string process = "a." + std::to_string(getpid());
  for (const std::string& name : {process, process + ".new", std::string("a.new")})
    fs::create_symlink(file("precious"), file(name));
  EXPECT_TRUE(writeWhole(file("a"), "new"));
  EXPECT_EQ(readText(file("precious")), "old");
}

TEST_F(WholeFile, ThatCannotBeReplacedLeavesNothingBeside) {
  fs::create_directories(file("a/inside"));
  const auto written = writeWhole(file("a"), "x");
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message().find(file("a")), std::string::npos);
  EXPECT_EQ(files(), 1);
  EXPECT_FALSE(writeWhole(file("nowhere/a"), "x"));
}

}  // namespace
}  // namespace falcon
