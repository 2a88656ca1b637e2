#include "run/launcher.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <random>

#include "machine/processes.h"
#include "run/supervisor.h"
#include "subcommand.h"

namespace falcon::tools {
namespace {

constexpr int passedOn[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2};

// Unique on this machine; the process id in front tells later runs whether it is still alive.
std::string newRunName() {
  return fmt::format("{}-{:04x}", ::getpid(), std::random_device{}() & 0xffff);
}

Result<RunPlan> planFor(const RunOptions& options) {
  RunPlan plan{options, newRunName(), "", ::getpid(), {}, {}};
  plan.job = jobNameOf(ownEnvironment(), plan.run);
  if (options.cgroups == UseCgroups::no) return plan;
  const auto controller = findCpuController();
  if (controller) {
    plan.cpuController = *controller;
  } else if (options.cgroups == UseCgroups::must) {
    return controller.error();
  }
  return plan;
}

bool wouldEndUs(int signal) {
  if (signal != SIGINT && signal != SIGTERM && signal != SIGHUP && signal != SIGQUIT) return false;
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_DFL;
}

/// Signals that wait for us until the job has ended.
class BlockedSignals {
 public:
  /// @param before  what was blocked already, as the ranks inherit it
  explicit BlockedSignals(sigset_t& before) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGCHLD);
    for (const int signal : passedOn) sigaddset(&signals_, signal);
    ::sigprocmask(SIG_BLOCK, &signals_, &before);
    before_ = before;
  }
  /// What came too late for the job is dropped with it.
  ~BlockedSignals() {
    const timespec now{};
    while (::sigtimedwait(&signals_, nullptr, &now) > 0) {
    }
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  BlockedSignals(const BlockedSignals&) = delete;

  int next() const { return ::sigwaitinfo(&signals_, nullptr); }

 private:
  sigset_t signals_;
  sigset_t before_;
};

int waitFor(pid_t supervisor, const BlockedSignals& signals, int* asked) {
  for (;;) {
    const int signal = signals.next();
    if (signal > 0 && signal != SIGCHLD) ::kill(supervisor, signal);
    if (asked && wouldEndUs(signal)) *asked = signal;
    int status = 0;
    if (::waitpid(supervisor, &status, WNOHANG) == supervisor) return status;
  }
}

}  // namespace

int launch(const RunOptions& options, int* asked) {
  auto plan = planFor(options);
  int ends[2];
  if (!plan || ::pipe2(ends, O_CLOEXEC) != 0) {
    fmt::print(stderr, "falcon run: {}\n", plan ? std::strerror(errno) : plan.error().message().c_str());
    return toolFailed;
  }
  FileDescriptor watched(ends[0]);
  FileDescriptor lifeline(ends[1]);
  if (char folder[] = "/tmp/falcon-run-XXXXXX"; options.restarts > 0) {
    if (!::mkdtemp(folder)) {
      fmt::print(stderr, "falcon run: cannot make {}: {}\n", folder, std::strerror(errno));
      return toolFailed;
    }
    plan->restartFolder = folder;
  }

  ::signal(SIGCHLD, SIG_DFL);  // whoever started us may have had it ignored: then there is nothing to wait for
  const BlockedSignals signals(plan->signalMask);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // gets the ranks' children should the supervisor be killed
  const std::set<pid_t> notOurs = descendantsOf(::getpid());

  const pid_t supervisor = ::fork();
  if (supervisor < 0) {
    fmt::print(stderr, "falcon run: cannot start a process: {}\n", std::strerror(errno));
    return toolFailed;
  }
  if (supervisor == 0) {
    lifeline.reset();
    ::_exit(Supervisor(*plan, std::move(watched)).run());
  }
  watched.reset();
  const int status = waitFor(supervisor, signals, asked);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  killDescendants(notOurs, 5s);
  cleanUp(*plan);
  fmt::print(stderr, "falcon run: its supervisor process was killed by signal {}; the job was ended\n",
             WTERMSIG(status));
  return toolFailed;
}

}  // namespace falcon::tools
