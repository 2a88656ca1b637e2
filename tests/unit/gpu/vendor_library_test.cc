#include "gpu/vendor_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace falcon::gpu {
namespace {

using testing::HasSubstr;

TEST(VendorLibrary, IsLoadedByItsPathWithAllFunctions) {
  const auto library = loadVendorLibrary(FALCON_FAKE_VENDOR);
  ASSERT_TRUE(library) << library.error().message();
  EXPECT_EQ((*library)->version, 22809);
  EXPECT_EQ((*library)->path, FALCON_FAKE_VENDOR);
  // The table holds nothing but functions: none may be missing.
  const auto* first = reinterpret_cast<void* const*>(&(*library)->functions);
  for (size_t i = 0; i < sizeof(VendorFunctions) / sizeof(void*); ++i) EXPECT_NE(first[i], nullptr) << "function " << i;
}

TEST(VendorLibrary, KeepsItsNamesToItself) {
  ASSERT_TRUE(loadVendorLibrary(FALCON_FAKE_VENDOR));
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "fakeVendorTakeLog"), nullptr);
}

TEST(VendorLibrary, SaysWhyAPathWillNotDo) {
  const auto why = [](const std::string& path) {
    const auto library = loadVendorLibrary(path);
    return library ? "loaded" : library.error().message();
  };
  EXPECT_THAT(why("libnccl.so.2"), HasSubstr("not an absolute path"));
  EXPECT_THAT(why("/nowhere/libnccl.so.2"), HasSubstr("does not exist"));
  EXPECT_THAT(why(FALCON_FAKE_CUDA), HasSubstr("has no pncclGetVersion"));
  EXPECT_THAT(why("/etc/hostname"), HasSubstr("cannot be loaded"));
}

TEST(VendorLibrary, NeverLoadsItself) {
  // In this test "itself" is the test program: the code under test is linked into it.
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const auto link = std::filesystem::temp_directory_path() / ("falcon-self-" + std::to_string(getpid()));
  std::filesystem::create_symlink(self, link);
  for (const std::string& path : {self, link.string()}) {
    const auto library = loadVendorLibrary(path);
    ASSERT_FALSE(library);
    EXPECT_THAT(library.error().message(), HasSubstr("NCCL Falcon itself"));
  }
  std::filesystem::remove(link);
}

}  // namespace
}  // namespace falcon::gpu
