#include "gpu/vendor_candidates.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace falcon::gpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> pathsOf(const std::vector<Candidate>& candidates) {
  std::vector<std::string> paths;
  for (const Candidate& candidate : candidates) paths.push_back(candidate.path);
  return paths;
}

TEST(VendorCandidates, PackageFoldersAreThoseThatHoldTheFiles) {
  EXPECT_THAT(packageFoldersOf({"/usr/lib/libc.so.6"}), IsEmpty());
  EXPECT_THAT(
      packageFoldersOf({"/v/lib/python3.11/site-packages/torch/lib/libtorch.so",
                        "/v/lib/python3.11/site-packages/numpy/core.so", "/usr/lib/python3/dist-packages/x.so"}),
      ElementsAre("/v/lib/python3.11/site-packages", "/usr/lib/python3/dist-packages"));
}

// As after `import torch`: an extension of a package is loaded, and NCCL lies in another package of the interpreter.
TEST(VendorCandidates, AreInThePackagesOfTheInterpreterAndWhereTheLoaderLooks) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("candidates-" + std::to_string(getpid()));
  const auto packages = folder / "lib/site-packages";
  const auto extension = packages / "framework/extension.so";
  const auto vendors = packages / "nvidia/nccl/lib/libnccl.so.2";
  std::filesystem::create_directories(extension.parent_path());
  std::filesystem::create_directories(vendors.parent_path());
  std::filesystem::copy_file(FALCON_FAKE_CUDA, extension);
  std::filesystem::copy_file(FALCON_FAKE_VENDOR, vendors);
  EXPECT_THAT(pathsOf(vendorCandidates()), testing::Not(testing::Contains(vendors.string())));
  void* const loaded = dlopen(extension.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(loaded, nullptr) << dlerror();
  // The extension has no folder of its own, so that the loader would look in this one for it: CuPy, which opens its
  // package's NCCL by path, on a machine that has another.
  const auto systems = folder / "system/libnccl.so.2";
  std::filesystem::create_directories(systems.parent_path());
  std::filesystem::copy_file(FALCON_FAKE_VENDOR, systems);
  const char* const before = getenv("LD_LIBRARY_PATH");
  const std::string kept = before ? before : "";
  setenv("LD_LIBRARY_PATH", (systems.parent_path().string() + ":" + kept).c_str(), 1);
  const auto candidates = pathsOf(vendorCandidates());
  EXPECT_THAT(candidates, testing::IsSupersetOf({vendors.string(), systems.string()}));
  EXPECT_LT(std::find(candidates.begin(), candidates.end(), vendors),
            std::find(candidates.begin(), candidates.end(), systems));
  before ? setenv("LD_LIBRARY_PATH", kept.c_str(), 1) : unsetenv("LD_LIBRARY_PATH");
  dlclose(loaded);

  // Whoever has loaded it already comes first.
  void* const already = dlopen(vendors.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(already, nullptr) << dlerror();
  ASSERT_FALSE(vendorCandidates().empty());
  EXPECT_EQ(vendorCandidates()[0].path, vendors.string());
  EXPECT_STREQ(vendorCandidates()[0].reason, "loaded already");
  std::filesystem::remove_all(folder);  // the library stays: what it has allocated is its own
}

}  // namespace
}  // namespace falcon::gpu
