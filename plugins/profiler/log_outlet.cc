#include "profiler/log_outlet.h"

#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include "base/contained.h"
#include "base/job_rank.h"
#include "base/library_thread.h"
#include "base/log.h"
#include "control/job.h"
#include "instrument/call_log_view.h"

namespace falcon::profiler {
namespace {

constexpr Nanoseconds interval = 100ms;
constexpr std::size_t callsAtATime = 4096;

/// Where a communicator spans the job, its ranks are the job's; of others only this one's is known.
instrument::CommunicatorEntry entryOf(const plugin::ProfiledCommunicator& communicator) {
  const char* world = std::getenv("WORLD_SIZE");
  const Rank own = jobRankFromEnvironment();
  const bool whole = world && std::atoi(world) == communicator.ranks && own == communicator.rank;
  instrument::CommunicatorEntry entry{.id = communicator.id,
                                      .rank = communicator.rank,
                                      .vendor = true,
                                      .name = communicator.name ? communicator.name : ""};
  for (Rank rank = 0; rank < communicator.ranks; ++rank)
    entry.members.push_back({.jobRank = rank == communicator.rank ? own : whole ? rank : -1});
  return entry;
}

/// This process has a log of that job already: there is a library of Falcon's that the plugin cannot see.
bool isRecorded(const std::string& job) {
  const Rank rank = jobRankFromEnvironment();
  const auto log = instrument::readCallLog(
      fmt::format("{}/rank-{}.calls", instrument::jobFolder(job), rank >= 0 ? rank : getpid()), 1);
  return log && log->pid == getpid() && !log->ended;
}

}  // namespace

LogOutlet::~LogOutlet() {
  close();
}

int LogOutlet::joined(const plugin::ProfiledCommunicator& communicator) noexcept {
  const std::lock_guard lock(mutex_);
  int place = noPlace;
  ++communicators_;
  contained([&] { place = keep(communicator); },
            [](const char* why) {
              log::notice("Falcon's profiler plugin cannot start: {}; the job goes on, and nothing is recorded", why);
            });
  return place;
}

/// With mutex_.
int LogOutlet::keep(const plugin::ProfiledCommunicator& communicator) {
  if (communicators_ == 1) open(communicator);
  auto* log = log_.load(std::memory_order_relaxed);
  return log ? log->add(entryOf(communicator)) : noPlace;
}

void LogOutlet::left(const plugin::ProfiledCommunicator& communicator) noexcept {
  const std::lock_guard lock(mutex_);
  if (auto* log = log_.load(std::memory_order_relaxed)) log->remove(communicator.id, communicator.rank);
  if (--communicators_ == 0) close();
}

void LogOutlet::open(const plugin::ProfiledCommunicator& first) {
  const std::string named = control::jobNameFromEnvironment();
  const std::string job = named.empty() ? fmt::format("{:016x}", first.id) : named;
  if (isRecorded(job)) return log::info("Falcon's profiler plugin does not record: Falcon in this process does");
  auto files = control::JobFiles::open(job);
  if (!files) return log::notice("{}; Falcon's profiler plugin records nothing", files.error().message());
  files_ = std::move(*files);
  stop_ = false;
  off_.store(false);
  files_->log().header().state.store(static_cast<std::uint32_t>(instrument::JobState::tracking));
  thread_ = libraryThread("nccl-falcon-prf", [this] { watch(); });
  log_.store(&files_->log(), std::memory_order_release);
}

/// With mutex_ held, or in the destructor. No event comes any more: the last communicator has ended.
void LogOutlet::close() {
  {
    const std::lock_guard lock(stopMutex_);
    stop_ = true;
  }
  stopping_.notify_all();
  if (thread_.joinable()) thread_.join();
  log_.store(nullptr, std::memory_order_release);
  files_.reset();
}

void LogOutlet::watch() {
  IterationWatch iterations;
  std::uint64_t next = 0;
  std::optional<Depth> told;
  do {
    contained([&] { look(next, iterations); },
              [this](const char* why) {
                if (!off_.exchange(true))
                  log::notice("Falcon's profiler plugin failed: {}; it records nothing more, and the job goes on", why);
              });
    const Depth depth = off_.load() ? Depth::nothing : iterations.profiles() ? Depth::channels : Depth::calls;
    if (depth != told) observe_(depth);
    told = depth;
    tick_();
  } while (rest());
  if (told != Depth::calls) observe_(Depth::calls);  // for who comes next
}

bool LogOutlet::rest() {
  std::unique_lock lock(stopMutex_);
  return !stopping_.wait_for(lock, interval, [this] { return stop_; });
}

void LogOutlet::look(std::uint64_t& next, IterationWatch& iterations) {
  instrument::CallLog& log = files_->log();
  instrument::CallLogHeader& header = log.header();
  std::vector<CallRecord> calls;
  do {
    calls.clear();
    if (const std::uint64_t lost = log.readFrom(next, calls, callsAtATime); lost > 0) iterations.overrun(lost);
    for (const CallRecord& call : calls) iterations.add(call);
  } while (calls.size() == callsAtATime);
  header.iterations.store(static_cast<std::int64_t>(iterations.iterations()), std::memory_order_relaxed);
  header.iterationNanoseconds.store(iterations.lastDuration().count(), std::memory_order_relaxed);
  header.failslowActive.store(iterations.slow() ? 1 : 0, std::memory_order_relaxed);
  using instrument::JobCommand;
  const auto command = static_cast<JobCommand>(header.command.load(std::memory_order_acquire) &
                                               ((1U << instrument::jobCommandBits) - 1));
  if (command == JobCommand::off) off_.store(true);
  const auto state = off_.load()             ? instrument::JobState::off
                     : iterations.profiles() ? instrument::JobState::profiling
                                             : instrument::JobState::tracking;
  header.state.store(static_cast<std::uint32_t>(state), std::memory_order_relaxed);
  header.heartbeat.store(SystemClock::instance().now().count(), std::memory_order_relaxed);
}

std::optional<Flight> LogOutlet::enter(CallRecord& call, int place) noexcept {
  auto* log = log_.load(std::memory_order_acquire);
  return log && !off_.load(std::memory_order_relaxed) ? log->enter(call, place) : noFlight;
}

void LogOutlet::label(const LabelledCall& call) noexcept {
  if (auto* log = log_.load(std::memory_order_acquire)) log->label(call);
}

void LogOutlet::leave(Flight flight, const CallRecord& call) noexcept {
  auto* log = log_.load(std::memory_order_acquire);
  if (log && (flight != noFlight || !off_.load(std::memory_order_relaxed))) log->leave(flight, call);
}

void LogOutlet::transfer(const TransferTiming& timing) noexcept {
  if (auto* log = log_.load(std::memory_order_acquire)) log->write(timing);
}

}  // namespace falcon::profiler
