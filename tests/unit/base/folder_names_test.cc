#include "base/folder_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/format.h"

namespace falcon {
namespace {

namespace fs = std::filesystem;

TEST(NamesIn, AreThoseOfFilesAndFoldersWhateverBytesTheyHave) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("falcon-names-{}", getpid());
  fs::create_directories(folder / "inner");
  for (const char* name : {"a", ".hidden", "\xff\xfe", "two words"}) std::ofstream(folder / name) << "x";
  const auto names = namesIn(folder);
  ASSERT_TRUE(names);
  EXPECT_THAT(*names, testing::UnorderedElementsAre("a", ".hidden", "\xff\xfe", "two words", "inner"));
  const auto ofFile = namesIn(folder / "a");
  ASSERT_FALSE(ofFile);
  EXPECT_THAT(ofFile.error().message(), testing::HasSubstr("Not a directory"));
  fs::remove_all(folder);
  EXPECT_FALSE(namesIn(folder));
}

}  // namespace
}  // namespace falcon
