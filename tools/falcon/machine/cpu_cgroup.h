// Cpu control groups, version 1 or 2, whichever of them has the cpu controller on this machine.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace falcon::tools {

/// One group: a folder of the cgroup file system.
class CpuCgroup {
 public:
  /// Throttling so far.
  struct Throttling {
    std::uint64_t periods = 0;           ///< quota periods in which the group was active
    std::uint64_t throttledPeriods = 0;  ///< of these, the ones in which it used its quota up
    double throttledSeconds = 0;
  };

  /// The group at `path`; both versions are told apart by the files in it.
  explicit CpuCgroup(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  bool exists() const;
  int version() const;

  /// Weight against the neighbours, in units of a default group's.
  Status setShares(int groups) const;
  Status add(pid_t process) const;
  std::vector<pid_t> processes() const;

  /// The kernel's own text of the quota in force, to be given back to restoreQuota() later.
  Result<std::string> quota() const;
  static constexpr double leastQuota = 0.01;  ///< cores: the kernel's 1 ms in 100 ms
  /// @param cores  processor seconds a second that the whole group may use; at least leastQuota
  Status setQuota(double cores) const;
  Status restoreQuota(const std::string& text) const;
  Result<Throttling> throttling() const;

 private:
  std::filesystem::path path_;
};

/// Groups of one job: a parent with as many shares as there are ranks, so that the job as a whole is not squeezed
/// against processes outside, and a child of equal shares for every rank.
struct JobCgroups {
  CpuCgroup job;
  std::vector<CpuCgroup> ranks;
};

/// Where this machine's job groups are made, or why there can be none.
Result<std::filesystem::path> findCpuController();

/// Makes the groups "falcon-<run>" under `controller`; nothing is left behind on failure.
Result<JobCgroups> makeJobCgroups(const std::filesystem::path& controller, const std::string& run, int ranks);

/// The rank's group of makeJobCgroups() that this process is in; nothing where it is in none, or we cannot get at it.
std::optional<CpuCgroup> rankCgroupOf(const std::filesystem::path& controller, pid_t process);

/// Kills what is still in the groups of a run and removes them; the groups need not be there.
/// @return whether they are gone
bool removeJobCgroups(const std::filesystem::path& controller, const std::string& run);

/// Removes groups of runs whose launcher and guardian were both killed. A run's name begins with its launcher's
/// process id.
void removeStaleJobCgroups(const std::filesystem::path& controller);

}  // namespace falcon::tools
