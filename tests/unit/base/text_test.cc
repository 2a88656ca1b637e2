#include "base/text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace falcon {
namespace {

TEST(ReadText, GivesAWholeFile) {
  const std::string path = testing::TempDir() + "text-" + std::to_string(getpid());
  std::ofstream(path) << std::string(100'000, 'x') << "\nend";
  EXPECT_EQ(readText(path), std::string(100'000, 'x') + "\nend");
  std::ofstream(path, std::ios::trunc);
  EXPECT_EQ(readText(path), "");
  unlink(path.c_str());
}

TEST(ReadText, GivesNothingWhereThereIsNothingToRead) {
  EXPECT_EQ(readText("/no/such/file"), "");
  // It can be opened, but each reading is an error, as of some files in /sys.
  EXPECT_EQ(readText("/proc/self/mem"), "");
}

}  // namespace
}  // namespace falcon
