#include "harness/forked_ranks.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include "harness/fork_alone.h"

namespace falcon::test {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

[[noreturn]] void runChild(const ForkedRanks::Body& body, int rank, int pipe, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(99);
  std::string report;
  try {
    report = body(rank);
  } catch (const std::exception& exception) {
    report = std::string("exception: ") + exception.what();
  }
  for (size_t done = 0; done < report.size();) {
    const ssize_t written = write(pipe, report.data() + done, report.size() - done);
    if (written <= 0) break;
    done += static_cast<size_t>(written);
  }
  std::fflush(nullptr);
  // Not exit(): the test's own state was copied here and must not be torn down twice.
  _exit(report.empty() ? 0 : 1);
}

}  // namespace

ForkedRanks::ForkedRanks(int ranks, const Body& body) {
  if (RankCgroups::wanted()) cgroups_ = std::make_unique<RankCgroups>(ranks);
  const pid_t parent = getpid();
  for (int rank = 0; rank < ranks; ++rank) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    const pid_t pid = forkAlone();
    if (pid < 0) std::abort();
    if (pid == 0) {
      close(ends[0]);
      for (const Child& child : children_) close(child.reportPipe);
      runChild([&](int self) { return cgroups_ && !cgroups_->enter(self) ? "cannot enter its cgroup" : body(self); },
               rank, ends[1], parent);
    }
    close(ends[1]);
    children_.push_back({.pid = pid, .reportPipe = ends[0], .outcome = {}});
  }
}

ForkedRanks::~ForkedRanks() {
  for (Child& child : children_) {
    if (!child.reaped) {
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
    }
    close(child.reportPipe);
  }
}

void ForkedRanks::signal(int rank, int number) const {
  kill(children_[rank].pid, number);
}

const RankOutcome& ForkedRanks::wait(int rank, Seconds limit) {
  Child& child = children_[rank];
  if (child.reaped) return child.outcome;
  const auto deadline = SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(limit);
  int status = 0;
  child.outcome.ended = true;
  while (waitpid(child.pid, &status, WNOHANG) == 0) {
    // The report must be drained while the child lives, or a long one would block it.
    pollfd readable{child.reportPipe, POLLIN, 0};
    char buffer[4096];
    if (poll(&readable, 1, 5) > 0) {
      const ssize_t got = read(child.reportPipe, buffer, sizeof buffer);
      if (got > 0) child.outcome.report.append(buffer, static_cast<size_t>(got));
      if (got <= 0) std::this_thread::sleep_for(1ms);
    }
    if (SteadyClock::now() < deadline || !child.outcome.ended) continue;
    child.outcome.ended = false;
    kill(child.pid, SIGKILL);
  }
  child.reaped = true;
  char buffer[4096];
  for (ssize_t got; (got = read(child.reportPipe, buffer, sizeof buffer)) > 0;)
    child.outcome.report.append(buffer, static_cast<size_t>(got));
  if (WIFEXITED(status)) child.outcome.exitCode = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) child.outcome.signal = WTERMSIG(status);
  return child.outcome;
}

testing::AssertionResult ForkedRanks::allRight(Seconds limit) {
  const auto start = SteadyClock::now();
  auto result = testing::AssertionSuccess();
  for (size_t rank = 0; rank < children_.size(); ++rank) {
    const Seconds left = limit - Seconds(SteadyClock::now() - start);
    const RankOutcome& outcome = wait(static_cast<int>(rank), std::max(left, Seconds(0)));
    if (outcome.exitCode == 0 && outcome.report.empty()) continue;
    if (result) result = testing::AssertionFailure();
    result << "rank " << rank << ": ";
    if (!outcome.ended) result << "still running after " << limit.count() << " s; ";
    if (outcome.signal) result << "signal " << outcome.signal << "; ";
    result << outcome.report << "\n";
  }
  return result;
}

SharedBoard::SharedBoard() {
  void* memory = mmap(nullptr, sizeof(Contents), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  contents_ = static_cast<Contents*>(memory);  // zeroed
}

SharedBoard::~SharedBoard() {
  munmap(contents_, sizeof(Contents));
}

bool SharedBoard::waitFor(int slot, int step, Seconds limit) const {
  const auto deadline = SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(limit);
  while (contents_->steps[slot].load() < step) {
    if (SteadyClock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

}  // namespace falcon::test
