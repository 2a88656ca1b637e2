// The loader's cache, which ldconfig writes from the folders in /etc/ld.so.conf. To ask the loader itself is no way:
// under the name libnccl.so.2 it has this library already.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace falcon::gpu {

inline constexpr const char* loaderCacheFile = "/etc/ld.so.cache";

/// The paths that a cache has for a library's name, in its order; also those for other machines. Empty where `cache`
/// is none of the format that glibc has written since 2.2 ("glibc-ld.so.cache1.1"), or is cut short.
std::vector<std::string> pathsInLoaderCache(std::string_view cache, std::string_view name);

}  // namespace falcon::gpu
