// What memory this process could have yet: the machine's, and what its cgroups allow.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace falcon {

/// Memory that all processes share that name it.
struct MemoryPool {
  std::string name;             ///< the machine's, or that and which of its cgroups
  std::uint64_t bytesLeft = 0;  ///< beside what is used; what is only cached counts as left
  bool operator==(const MemoryPool&) const = default;
};

/// The cgroups with a limit of memory among this folder's and those above it.
/// @param machine  what all of its processes call it
std::vector<MemoryPool> limitedMemory(std::string folder, const std::string& machine);

/// Of the machine, as /proc/meminfo (`text`) says; 0: it does not.
std::uint64_t availableMemory(std::string_view text);

/// All that this process needs to have a part in, whichever has the least. Empty: nothing is known. Reads some small
/// files: about 0.2 ms.
std::vector<MemoryPool> memoryPoolsOfThisProcess();

}  // namespace falcon
