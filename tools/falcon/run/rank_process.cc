#include "run/rank_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/owned.h"

namespace falcon::tools {
namespace {

/// What the child could not do; travels over a pipe that exec closes.
struct Failure {
  enum Step : int { cgroup, netNamespace, cores, descriptors, execute } step;
  int number;
};

[[noreturn]] void fail(int report, Failure::Step step) {
  const Failure failure{step, errno};
  (void)!::write(report, &failure, sizeof failure);
  ::_exit(127);
}

bool bindTo(const std::vector<int>& cores) {
  if (cores.empty()) return true;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<size_t>(core), &set);
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

bool connectDescriptors(const RankStart& start) {
  if (start.place.rank != 0) {
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0) return false;
  }
  return ::dup2(start.output, STDOUT_FILENO) >= 0 && ::dup2(start.errors, STDERR_FILENO) >= 0;
}

[[noreturn]] void becomeRank(const RankStart& start, pid_t parent, int report) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  if (start.cgroup && !start.cgroup->add(::getpid())) fail(report, Failure::cgroup);
  if (start.netNamespace >= 0 && ::setns(start.netNamespace, CLONE_NEWNET) != 0) fail(report, Failure::netNamespace);
  if (!bindTo(start.place.cores)) fail(report, Failure::cores);
  if (!connectDescriptors(start)) fail(report, Failure::descriptors);
  for (const auto& [name, value] : start.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &start.signalMask, nullptr);
  std::vector<char*> words;
  for (const auto& word : *start.program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  fail(report, Failure::execute);
}

Error explain(const RankStart& start, const Failure& failure) {
  const char* reason = std::strerror(failure.number);
  switch (failure.step) {
    case Failure::execute:
      return Error::invalidArgument("cannot execute {}: {}; is the path right, and the file executable?",
                                    start.program->front(), reason);
    case Failure::cgroup:
      return Error::system("cannot move rank {} into its cgroup {}: {}", start.place.rank,
                           start.cgroup->path().string(), reason);
    case Failure::netNamespace:
      return Error::system("cannot move rank {} into its node: {}", start.place.rank, reason);
    case Failure::cores:
      return Error::system("cannot bind rank {} to its cores: {}; try --bind none", start.place.rank, reason);
    case Failure::descriptors:
      break;
  }
  return Error::system("cannot connect the output of rank {}: {}", start.place.rank, reason);
}

}  // namespace

Result<pid_t> startRank(const RankStart& start) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::system("cannot make a pipe: {}", std::strerror(errno));
  const FileDescriptor watched(ends[0]);
  FileDescriptor report(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return Error::system("cannot start rank {}: {}", start.place.rank, std::strerror(errno));
  if (child == 0) becomeRank(start, parent, report.get());
  report.reset();
  ::setpgid(child, child);  // in both, so that neither can come too early with a signal

  Failure failure{};
  ssize_t count = 0;
  do {
    count = ::read(watched.get(), &failure, sizeof failure);
  } while (count < 0 && errno == EINTR);
  if (count == 0) return child;  // exec closed the pipe
  ::waitpid(child, nullptr, 0);
  return explain(start, failure);
}

}  // namespace falcon::tools
