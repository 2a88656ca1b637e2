#include "machine/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace falcon::tools {
namespace {

// Another guardian started later by the same owner would inherit this one's lifeline and keep it open for ever.
void closeAllBut(int one, int other) {
  unsigned from = 3;
  for (const int kept : {std::min(one, other), std::max(one, other)}) {
    if (kept < static_cast<int>(from)) continue;
    if (kept > static_cast<int>(from)) ::close_range(from, static_cast<unsigned>(kept - 1), 0);
    from = static_cast<unsigned>(kept + 1);
  }
  ::close_range(from, ~0U, 0);
}

void waitForTheEnd(int lifeline, const std::function<Nanoseconds()>& step) {
  for (;;) {
    timespec wait{};
    if (step) {
      const Nanoseconds next = step();
      wait = {next / 1s, (next % 1s).count()};
    }
    pollfd watched{lifeline, POLLIN, 0};
    const int ready = ::ppoll(&watched, 1, step ? &wait : nullptr, nullptr);
    if (ready > 0) return;
  }
}

[[noreturn]] void guard(int lifeline, const Guardian::Work& work) {
  ::setsid();  // what a terminal or a supervisor sends to the owner's group must not end the guardian
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  closeAllBut(lifeline, work.kept);
  // A reader of the owner's stdout must not wait for the guardian.
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  waitForTheEnd(lifeline, work.step);
  work.undo();
  ::_exit(0);
}

}  // namespace

Guardian::Guardian(pid_t process, FileDescriptor lifeline, std::function<void()> undo)
    : process_(process), lifeline_(std::move(lifeline)), undo_(std::move(undo)) {}

Result<Guardian> Guardian::start(Work work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::system("cannot make a pipe: {}", std::strerror(errno));
  FileDescriptor watched(ends[0]);
  FileDescriptor lifeline(ends[1]);
  const pid_t process = ::fork();
  if (process < 0) return Error::system("cannot start a guardian process: {}", std::strerror(errno));
  if (process == 0) guard(watched.get(), work);
  return Guardian(process, std::move(lifeline), std::move(work.undo));
}

bool Guardian::isGone() const {
  siginfo_t ended{};
  return ::waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0;
}

void Guardian::release() {
  if (!lifeline_) return;
  lifeline_.reset();
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  const bool undone = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!undone) undo_();  // somebody killed the guardian
}

}  // namespace falcon::tools
