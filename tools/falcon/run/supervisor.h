// The ranks' parent: makes network and cgroups, starts the ranks, watches them, and leaves nothing behind.
#pragma once

#include <signal.h>

#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "base/owned.h"
#include "base/result.h"
#include "machine/description.h"
#include "run/end_policy.h"
#include "run/node_network.h"
#include "run/output_relay.h"
#include "run/rank_process.h"
#include "run/restart_policy.h"

namespace falcon::tools {

/// What launcher and supervisor both know of a run, so that either can clean up alone.
struct RunPlan {
  RunOptions options;
  std::string run;  ///< "<launcher's process id>-<random>"
  std::string job;
  int launcher = -1;
  std::optional<std::filesystem::path> cpuController;  ///< where the cgroups go; empty: none are made
  sigset_t signalMask{};                               ///< as the launcher found it
  std::string restartFolder{};  ///< a folder of its own, for the job's requests to be restarted; empty: none
};

/// Removes what a run may have left: the cgroups with all processes in them, and its folder. Namespaces go by
/// themselves.
void cleanUp(const RunPlan& plan);

/// Lives in a process of its own, a child subreaper in its own session, with SIGINT and its like blocked.
class Supervisor {
 public:
  /// @param lifeline  ends when the launcher is gone
  Supervisor(RunPlan plan, FileDescriptor lifeline);

  /// Runs the job to its end. @return the job's exit code
  int run();

 private:
  struct Running {
    RankPlacement place;
    bool killed = false;  ///< by us, with SIGKILL
  };

  Status prepare();
  void setOut();
  Result<int> runOnce();  ///< the code of an attempt; an error: it could not be started
  bool goesOn(int code);
  Result<int> startRanks();  ///< 0, or 127 where the program cannot be executed
  Status startRank(const RankPlacement& place);
  Status describe();
  void superviseRanks();
  void waitForNews();
  void passOnSignals();
  void reapAll();
  void report(const Running& rank, int process, int status);
  void act(EndPolicy::Action action);
  void say(const std::string& text);
  [[noreturn]] void abandon();  ///< the launcher was killed

  RunPlan plan_;
  FileDescriptor lifeline_;
  FileDescriptor signals_;
  FileDescriptor messages_;  ///< to stderr, by way of the relay
  JobSettings settings_;
  std::vector<RankPlacement> places_;
  std::optional<NodeNetwork> network_;
  std::optional<JobCgroups> cgroups_;
  std::optional<OutputRelay> relay_;  ///< of the attempt that runs
  std::vector<pid_t> processes_;      ///< of all ranks, in rank order
  std::map<pid_t, Running> running_;
  EndPolicy policy_;
  RestartPolicy restarts_;
  bool cannotExecute_ = false;  ///< the program, so that it makes no sense to try again
  bool lostOutput_ = false;
  bool asked_ = false;          ///< a signal that ends jobs was passed on
  std::optional<int> failure_;  ///< exit code of the first rank that failed
};

}  // namespace falcon::tools
