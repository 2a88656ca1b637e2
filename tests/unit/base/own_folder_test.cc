#include "base/own_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace falcon {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OwnFolder : public testing::Test {
 protected:
  ~OwnFolder() override { fs::remove_all(path_); }
  mode_t rights() const {
    struct stat facts {};
    return stat(path_.c_str(), &facts) == 0 ? facts.st_mode & 07777 : 0;
  }
  const std::string path_ = testing::TempDir() + "falcon-own-" + std::to_string(getpid());
};

TEST_F(OwnFolder, IsMadeForThisUserAlone) {
  EXPECT_FALSE(openOwnFolder(path_));
  EXPECT_TRUE(makeOwnFolder(path_));
  EXPECT_EQ(rights(), 0700u);
  EXPECT_TRUE(makeOwnFolder(path_));
  EXPECT_TRUE(openOwnFolder(path_));
}

TEST_F(OwnFolder, IsItsOwnersWhateverTheUmask) {
  const mode_t before = umask(0777);
  const auto made = makeOwnFolder(path_);
  umask(before);
  EXPECT_TRUE(made);
  EXPECT_EQ(rights(), 0700u);
}

TEST_F(OwnFolder, IsClosedToOthers) {
  fs::create_directory(path_);
  for (const mode_t wide : {0777, 01777, 0770, 0755}) {
    ASSERT_EQ(chmod(path_.c_str(), wide), 0);
    EXPECT_TRUE(makeOwnFolder(path_));
    EXPECT_EQ(rights(), 0700u);
  }
}

TEST_F(OwnFolder, IsNoLinkAndNoFile) {
  fs::create_directory_symlink(testing::TempDir(), path_);
  const auto link = makeOwnFolder(path_);
  ASSERT_FALSE(link);
  EXPECT_THAT(link.error().message(), testing::AllOf(HasSubstr(path_), HasSubstr("a link"), HasSubstr("remove it")));
  fs::remove(path_);
  ASSERT_EQ(mknod(path_.c_str(), S_IFREG | 0600, 0), 0);
  EXPECT_FALSE(makeOwnFolder(path_));
}

TEST_F(OwnFolder, IsNotAnotherUsers) {
  std::string other = "/usr";  // root's
  if (getuid() == 0) {
    fs::create_directory(other = path_);
    ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  }
  const auto opened = makeOwnFolder(other);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message(),
              testing::AllOf(HasSubstr(other), HasSubstr("belongs to user"),
                             HasSubstr(std::to_string(getuid() == 0 ? 12345 : 0)), HasSubstr("have it removed")));
}

}  // namespace
}  // namespace falcon
