// Turns a place into a running process.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>

#include "base/result.h"
#include "machine/cpu_cgroup.h"
#include "run/environment.h"

namespace falcon::tools {

struct RankStart {
  RankPlacement place;
  Environment environment;  ///< to set on top of this process's
  const std::vector<std::string>* program = nullptr;
  std::optional<CpuCgroup> cgroup;
  int netNamespace = -1;  ///< -1: this one
  int output = -1;
  int errors = -1;
  sigset_t signalMask{};  ///< as the launcher found it
};

/// Starts the program as leader of a process group of its own, in its cgroup, namespace and on its cores from its first
/// instruction on, and returns when it runs. It is killed when the calling thread ends.
/// Rank 0 has this process's stdin, the others read nothing.
/// Errors: invalidArgument where the program cannot be executed, system for all else.
Result<pid_t> startRank(const RankStart& start);

}  // namespace falcon::tools
