#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <vector>

#include "transport/doorbell.h"
#include "transport/local_ports.h"

namespace falcon::transport {
namespace {

// A wake across cores costs 25 us and a yield 0.2-0.6 us: so yield first, for about as long as two wakes take.
constexpr Nanoseconds yieldTime = 50us;
// Rings are not seen while poll sleeps. With both kinds of sources a chunk may come by the doorbell: look often at
// first, later after an eighth of the time that nothing moved. So it comes late by that at most, and a long wait costs
// little: 250 looks a second.
constexpr Nanoseconds firstMixedSlice = 100us;
constexpr Nanoseconds longestMixedSlice = 4ms;
// A look at one costs its reader as much as a poll does.
constexpr std::size_t fewSockets = 2;
// With sockets alone only an abort or a lifted hold rings.
constexpr Nanoseconds socketSlice = 20ms;

/// What one thread has in progress with one waiter.
struct Turn {
  std::uint64_t waiter = 0;  // 0: free
  std::uint32_t ticket = 0;
  bool waited = false;                      // since prepare()
  std::optional<Nanoseconds> stuckSince{};  // the first wait() after something moved
};

// A few, for the case that a wait loop calls something that waits itself. One that was evicted only costs an early
// return.
constexpr std::size_t turnsPerThread = 4;
thread_local std::array<Turn, turnsPerThread> turns;
thread_local std::size_t nextTurn = 0;

std::atomic<std::uint64_t> lastWaiter{0};

class SystemWaiter final : public Waiter {
 public:
  void prepare() override;
  void wait(std::span<const WaitSource> sources, Nanoseconds limit) override { wait(sources, limit, yieldTime); }
  void sleep(std::span<const WaitSource> sources, Nanoseconds limit) override { wait(sources, limit, 0ns); }

 private:
  void wait(std::span<const WaitSource> sources, Nanoseconds limit, Nanoseconds yieldFor);
  Turn* findTurn() const;
  template <typename Slice>
  void pollInSlices(const Turn& turn, std::span<pollfd> sockets, Slice slice, Nanoseconds deadline);

  const std::uint64_t number_ = ++lastWaiter;
  Doorbell& doorbell_ = processDoorbell();
  const Clock& clock_ = SystemClock::instance();
};

Turn* SystemWaiter::findTurn() const {
  const auto found = std::find_if(turns.begin(), turns.end(), [&](const Turn& turn) { return turn.waiter == number_; });
  return found == turns.end() ? nullptr : &*found;
}

void SystemWaiter::prepare() {
  Turn* turn = findTurn();
  if (turn == nullptr) {
    turn = &turns[nextTurn++ % turnsPerThread];
    *turn = {.waiter = number_};
  }
  // Twice in a row without a wait: something moved in between, so a new stall begins.
  if (!turn->waited) turn->stuckSince.reset();
  turn->waited = false;
  turn->ticket = doorbell_.ticket();
}

void SystemWaiter::wait(std::span<const WaitSource> sources, Nanoseconds limit, Nanoseconds yieldFor) {
  Turn* turn = findTurn();
  if (turn == nullptr) return;  // no ticket: who calls looks again
  turn->waited = true;
  const auto start = clock_.now();
  const auto deadline = start + limit;
  if (!turn->stuckSince) turn->stuckSince = start;

  thread_local std::vector<pollfd> sockets;
  sockets.clear();  // nothing is reserved: who waits for no socket allocates nothing, not even the first time
  bool doorbell = false;
  bool timed = false;  // a source that only time helps
  for (const WaitSource& source : sources) {
    doorbell |= source.kind == WaitSource::Kind::doorbell;
    if (source.kind != WaitSource::Kind::socket) continue;
    timed |= source.events == 0;
    sockets.push_back({source.descriptor, source.events, 0});
  }

  const auto yieldUntil = std::min(deadline, *turn->stuckSince + yieldFor);
  while (clock_.now() < yieldUntil) {
    sched_yield();
    if (doorbell_.ticket() != turn->ticket) return;
    // Of so few the caller sees as fast itself whether something came.
    if (!sockets.empty() && (sockets.size() <= fewSockets || poll(sockets.data(), sockets.size(), 0) != 0)) return;
  }
  if (sockets.empty()) return doorbell_.wait(turn->ticket, deadline - clock_.now());
  const auto mixedSlice = [&](Nanoseconds at) {
    return std::clamp((at - *turn->stuckSince) / 8, firstMixedSlice, longestMixedSlice);
  };
  if (timed) {
    // One slice: the caller asks its ports again whether time has helped.
    const auto once = clock_.now() + mixedSlice(clock_.now());
    return pollInSlices(*turn, sockets, mixedSlice, std::min(deadline, once));
  }
  if (doorbell) return pollInSlices(*turn, sockets, mixedSlice, deadline);
  pollInSlices(
      *turn, sockets, [](Nanoseconds) { return socketSlice; }, deadline);
}

/// Polls until something can be moved, or it rang since the turn's ticket; `slice` of the time is how long it may
/// sleep.
template <typename Slice>
void SystemWaiter::pollInSlices(const Turn& turn, std::span<pollfd> sockets, Slice slice, Nanoseconds deadline) {
  while (doorbell_.ticket() == turn.ticket) {
    const auto start = clock_.now();
    const auto rest = deadline - start;
    if (rest <= Nanoseconds::zero()) return;
    const timespec limit{0, static_cast<long>(std::min<Nanoseconds>(slice(start), rest).count())};
    if (ppoll(sockets.data(), sockets.size(), &limit, nullptr) != 0) return;
  }
}

}  // namespace

std::unique_ptr<Waiter> makeWaiter() {
  return std::make_unique<SystemWaiter>();
}

void ringOwnDoorbell() {
  processDoorbell().ring();
}

}  // namespace falcon::transport
