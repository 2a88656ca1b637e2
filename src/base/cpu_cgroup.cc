#include "base/cpu_cgroup.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/text.h"

namespace falcon {
namespace {

bool listContains(std::string_view list, std::string_view word) {
  const auto words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// "<mount point>/<cgroup below what is mounted there>"; nothing if the cgroup is not below.
std::optional<std::string> below(std::string_view mountPoint, std::string_view mountedRoot, std::string_view cgroup) {
  if (mountedRoot != "/") {
    if (!cgroup.starts_with(mountedRoot)) return std::nullopt;
    cgroup.remove_prefix(mountedRoot.size());
    if (!cgroup.empty() && cgroup.front() != '/') return std::nullopt;
  }
  std::string path(mountPoint);
  if (cgroup != "/") path += cgroup;
  return path;
}

/// Cores; nothing where there is no limit.
std::optional<double> quotaIn(const std::string& folder) {
  std::optional<double> quota, period;
  if (const std::string both = readText(folder + "/cpu.max"); !both.empty()) {  // "max 100000" or "150000 100000"
    const auto parts = split(both, ' ');
    quota = leadingNumber<double>(parts[0]);
    if (parts.size() > 1) period = leadingNumber<double>(parts[1]);
  } else {
    quota = leadingNumber<double>(readText(folder + "/cpu.cfs_quota_us"));  // -1: no limit
    period = leadingNumber<double>(readText(folder + "/cpu.cfs_period_us"));
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

std::uint64_t numberOf(const std::string& folder) {
  struct stat status {};
  return stat(folder.c_str(), &status) == 0 ? status.st_ino : 0;
}

}  // namespace

std::vector<std::string> cgroupFolders(std::string_view controller, std::string_view cgroup,
                                       std::string_view mountInfo) {
  std::optional<std::string_view> version1, version2;
  for (const auto line : split(cgroup, '\n')) {  // id:controllers:path
    const auto first = line.find(':');
    const auto second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) version2 = line.substr(second + 1);
    if (listContains(controllers, controller)) version1 = line.substr(second + 1);
  }
  std::vector<std::string> ofVersion1, ofVersion2;
  for (const auto line : split(mountInfo, '\n')) {  // id parent device root point options [tags] - type source options
    const auto dash = line.find(" - ");
    if (dash == line.npos) continue;
    const auto left = split(line.substr(0, dash), ' ');
    const auto right = split(line.substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    if (version1 && right[0] == "cgroup" && listContains(right[2], controller)) {
      if (auto path = below(left[4], left[3], *version1)) ofVersion1.push_back(std::move(*path));
    } else if (version2 && right[0] == "cgroup2") {
      if (auto path = below(left[4], left[3], *version2)) ofVersion2.push_back(std::move(*path));
    }
  }
  ofVersion1.insert(ofVersion1.end(), ofVersion2.begin(), ofVersion2.end());
  return ofVersion1;
}

std::optional<CpuQuota> smallestQuota(std::string folder) {
  std::optional<CpuQuota> smallest;
  for (; folder.size() > 1; folder.erase(folder.rfind('/'))) {
    const auto cores = quotaIn(folder);
    if (cores && (!smallest || *cores < smallest->cores)) smallest = {*cores, numberOf(folder)};
    if (folder.rfind('/') == folder.npos) break;
  }
  return smallest;
}

std::optional<CpuQuota> quotaOfThisProcess() {
  std::optional<CpuQuota> smallest;
  for (auto& folder : cpuCgroupFolders(readText("/proc/self/cgroup"), readText("/proc/self/mountinfo"))) {
    const auto found = smallestQuota(std::move(folder));
    if (found && (!smallest || found->cores < smallest->cores)) smallest = found;
  }
  return smallest;
}

}  // namespace falcon
