// The cgroups that this process is in, version 1 or 2, and what processor time they give it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace falcon {

/// Folders of the process's cgroup with a controller's files: version 1's first, then version 2's. Several, best first;
/// none where the cgroup is outside of what is mounted.
/// @param controller  "cpu", "memory"
/// @param cgroup      text of /proc/self/cgroup
/// @param mountInfo   text of /proc/self/mountinfo
std::vector<std::string> cgroupFolders(std::string_view controller, std::string_view cgroup,
                                       std::string_view mountInfo);
inline std::vector<std::string> cpuCgroupFolders(std::string_view cgroup, std::string_view mountInfo) {
  return cgroupFolders("cpu", cgroup, mountInfo);
}

/// What the processes of one cgroup may use together.
struct CpuQuota {
  double cores = 0;         ///< processor seconds a second
  std::uint64_t group = 0;  ///< which cgroup of this node: who names the same one shares the quota
  bool operator==(const CpuQuota&) const = default;
};

/// The smallest quota of a cgroup folder and those above it; nothing where none has one.
std::optional<CpuQuota> smallestQuota(std::string folder);

/// Of this process. Reads some small files: about 0.1 ms.
std::optional<CpuQuota> quotaOfThisProcess();

}  // namespace falcon
