// Who is killed removes nothing: the next one does.
#include "work_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <iterator>
#include <optional>

namespace falcon::tools {
namespace {

namespace fs = std::filesystem;

class WorkFolders : public testing::Test {
 protected:
  WorkFolders() { ::setenv("TMPDIR", parent_->path().c_str(), 1); }
  ~WorkFolders() override { ::unsetenv("TMPDIR"); }
  /// In a process that ends without destructors, as a killed one does.
  void leave(bool keep) {
    const pid_t child = ::fork();
    if (child == 0) {
      const WorkFolder folder("test", keep);
      folder.sub("something");
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
  }
  long number() const { return std::distance(fs::directory_iterator(parent_->path()), fs::directory_iterator()); }

  std::optional<WorkFolder> parent_{std::in_place, "work-folder-test"};
};

TEST_F(WorkFolders, OfTheKilledGoWithTheNextOne) {
  leave(false);
  EXPECT_EQ(number(), 1);
  {
    const WorkFolder next("other");
    EXPECT_EQ(number(), 1);
    EXPECT_TRUE(fs::exists(next.path()));
  }
  EXPECT_EQ(number(), 0);
}

TEST_F(WorkFolders, OfTheLivingAndKeptOnesStay) {
  leave(true);
  const WorkFolder mine("test");
  leave(false);
  const WorkFolder next("test");
  EXPECT_TRUE(fs::exists(mine.path()));
  EXPECT_EQ(number(), 3);
}

}  // namespace
}  // namespace falcon::tools
