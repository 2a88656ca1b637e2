#include "gpu/loader_cache.h"

#include <cstdint>
#include <cstring>

namespace falcon::gpu {
namespace {

constexpr std::string_view magic = "glibc-ld.so.cache1.1";

struct Header {
  char magic[20];
  std::uint32_t entries, textBytes;
  std::uint32_t unused[5];
};
static_assert(sizeof(Header) == 48);

struct Entry {
  std::int32_t flags;
  std::uint32_t name, path;  ///< where these texts begin in the cache
  std::uint32_t system;
  std::uint64_t processor;
};
static_assert(sizeof(Entry) == 24);

/// The text that begins there; empty: it would end outside.
std::string_view textAt(std::string_view cache, std::uint32_t offset) {
  if (offset >= cache.size()) return {};
  const auto end = cache.find('\0', offset);
  return end == std::string_view::npos ? std::string_view() : cache.substr(offset, end - offset);
}

}  // namespace

std::vector<std::string> pathsInLoaderCache(std::string_view cache, std::string_view name) {
  std::vector<std::string> paths;
  // Until 2.31 one of an older format stood before it.
  const auto begin = cache.find(magic);
  if (begin == std::string_view::npos) return paths;
  cache.remove_prefix(begin);
  Header header;
  if (cache.size() < sizeof header) return paths;
  std::memcpy(&header, cache.data(), sizeof header);
  if (header.entries > (cache.size() - sizeof header) / sizeof(Entry)) return paths;
  for (std::size_t i = 0; i < header.entries; ++i) {
    Entry entry;
    std::memcpy(&entry, cache.data() + sizeof header + i * sizeof entry, sizeof entry);
    if (textAt(cache, entry.name) == name) paths.emplace_back(textAt(cache, entry.path));
  }
  return paths;
}

}  // namespace falcon::gpu
