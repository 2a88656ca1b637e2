#include "gpu/loader_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>

#include "base/input_file.h"

namespace falcon::gpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

template <class Value>
void put(std::string& bytes, Value value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// As ldconfig writes it: the header, the entries, then the texts.
std::string cacheOf(const std::vector<std::pair<std::string, std::string>>& libraries) {
  std::string texts, cache = "glibc-ld.so.cache1.1";
  const std::size_t begin = 48 + 24 * libraries.size();
  put(cache, static_cast<std::uint32_t>(libraries.size()));
  put(cache, std::uint32_t{0});
  cache.append(20, '\0');
  for (const auto& [name, path] : libraries) {
    put(cache, std::int32_t{0x0303});
    for (const std::string& text : {name, path}) {
      put(cache, static_cast<std::uint32_t>(begin + texts.size()));
      texts += text + '\0';
    }
    put(cache, std::uint32_t{0});
    put(cache, std::uint64_t{0});
  }
  return cache + texts;
}

const std::string twoPlaces = cacheOf({{"libm.so.6", "/lib/libm.so.6"},
                                       {"libnccl.so.2", "/opt/nccl/lib/libnccl.so.2"},
                                       {"libnccl.so.2", "/other/libnccl.so.2"},
                                       {"libnccl.so.20", "/other/libnccl.so.20"}});

TEST(LoaderCache, HasThePathsOfANameInItsOrder) {
  EXPECT_THAT(pathsInLoaderCache(twoPlaces, "libnccl.so.2"),
              ElementsAre("/opt/nccl/lib/libnccl.so.2", "/other/libnccl.so.2"));
  EXPECT_THAT(pathsInLoaderCache(twoPlaces, "libnccl.so"), IsEmpty());
  EXPECT_THAT(pathsInLoaderCache("ld.so-1.7.0" + std::string(37, '\0') + twoPlaces, "libm.so.6"),
              ElementsAre("/lib/libm.so.6"));
}

TEST(LoaderCache, OfWhatIsNoneOrIsCutOrLiesNothingIsTaken) {
  EXPECT_THAT(pathsInLoaderCache("", "libnccl.so.2"), IsEmpty());
  EXPECT_THAT(pathsInLoaderCache("glibc-ld.so.cache9.9", "libnccl.so.2"), IsEmpty());
  for (std::size_t bytes = 0; bytes < twoPlaces.size(); ++bytes) {
    const std::string cut = twoPlaces.substr(0, bytes);  // read beyond it the address sanitizer says so
    EXPECT_LE(pathsInLoaderCache(cut, "libnccl.so.2").size(), 2u);
  }
  for (std::size_t at = 20; at < 48 + 4 * 24; ++at) {
    std::string lying = twoPlaces;
    lying[at] = '\xff';
    EXPECT_LE(pathsInLoaderCache(lying, "libnccl.so.2").size(), 2u) << at;
  }
}

TEST(LoaderCache, OfThisMachineHasItsCLibrary) {
  const auto cache = readInputFile(loaderCacheFile);
  ASSERT_TRUE(cache);
  const auto paths = pathsInLoaderCache(*cache, "libc.so.6");
  ASSERT_FALSE(paths.empty());
  EXPECT_TRUE(std::filesystem::exists(paths[0])) << paths[0];
}

}  // namespace
}  // namespace falcon::gpu
