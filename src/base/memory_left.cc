#include "base/memory_left.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "base/cpu_cgroup.h"
#include "base/text.h"

namespace falcon {
namespace {

/// The number behind `key` at a line's start.
std::optional<std::uint64_t> valueOf(std::string_view key, std::string_view text) {
  for (auto line : split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return leadingNumber<std::uint64_t>(line);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> numberIn(const std::string& path) {
  return leadingNumber<std::uint64_t>(readText(path));  // "max": none
}

/// Version 2: beyond memory.high a cgroup is slowed down, beyond memory.max a process of it is killed.
std::optional<std::uint64_t> limitIn(const std::string& folder) {
  // Version 1 says "no limit" by nearly all that an int64 can be.
  constexpr std::uint64_t none = std::uint64_t{1} << 60;
  std::optional<std::uint64_t> least;
  for (const char* file : {"/memory.max", "/memory.high", "/memory.limit_in_bytes"})
    if (const auto limit = numberIn(folder + file); limit && *limit < none && (!least || *limit < *least))
      least = limit;
  return least;
}

std::optional<std::uint64_t> usedIn(const std::string& folder) {
  if (const auto used = numberIn(folder + "/memory.current")) return used;
  return numberIn(folder + "/memory.usage_in_bytes");
}

/// Files that are only cached, which the kernel drops where memory is wanted.
std::uint64_t cachedIn(const std::string& folder) {
  const std::string statistics = readText(folder + "/memory.stat");
  if (const auto ofVersion1 = valueOf("total_inactive_file ", statistics)) return *ofVersion1;
  return valueOf("inactive_file ", statistics).value_or(0);
}

std::string poolName(const std::string& folder, const std::string& machine) {
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) return machine + " " + folder;
  return machine + " cgroup " + std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

/// "" where it cannot be told from others.
std::string machineName() {
  std::string boot = readText("/proc/sys/kernel/random/boot_id");
  while (!boot.empty() && boot.back() == '\n') boot.pop_back();
  return boot;
}

}  // namespace

std::vector<MemoryPool> limitedMemory(std::string folder, const std::string& machine) {
  std::vector<MemoryPool> pools;
  for (; folder.size() > 1; folder.erase(folder.rfind('/'))) {
    const auto limit = limitIn(folder), used = usedIn(folder);
    if (limit && used) {
      const std::uint64_t kept = *used - std::min(*used, cachedIn(folder));
      pools.push_back({poolName(folder, machine), *limit - std::min(*limit, kept)});
    }
    if (folder.rfind('/') == folder.npos) break;
  }
  return pools;
}

std::uint64_t availableMemory(std::string_view text) {
  return valueOf("MemAvailable:", text).value_or(0) * 1024;
}

std::vector<MemoryPool> memoryPoolsOfThisProcess() {
  const std::string machine = machineName();
  std::vector<MemoryPool> pools;
  if (machine.empty()) return pools;
  if (const std::uint64_t available = availableMemory(readText("/proc/meminfo")); available > 0)
    pools.push_back({machine, available});
  for (const auto& folder : cgroupFolders("memory", readText("/proc/self/cgroup"), readText("/proc/self/mountinfo"))) {
    const auto limited = limitedMemory(folder, machine);
    pools.insert(pools.end(), limited.begin(), limited.end());
  }
  return pools;
}

}  // namespace falcon
