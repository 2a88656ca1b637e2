#include "control/ranges.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace falcon::control {
namespace {

// Plain atomics, and no object behind a lock: this is the application's path.
constinit std::atomic<instrument::RangeLog*> currentLog{nullptr};
constinit std::atomic<int> users{0};
constinit std::atomic<std::uint32_t> logs{0};
constinit instrument::RangeDensity density;

constexpr int deepest = 32;  // ranges inside of ranges; deeper ones are counted, not recorded
constexpr char ourDomain = 0;

struct Open {
  const void* domain = nullptr;
  std::int64_t begin = 0;
  std::uint32_t name = 0;
  bool recorded = false;
  std::int8_t shown = instrument::RangeLog::noPlace;  // to who looks from outside
};
struct Thread {
  Open open[deepest] = {};
  int depth = 0;
  std::uint32_t log = 0;     // of which the open ranges are: another one knows other numbers for the names
  std::uint32_t number = 0;  // the kernel's
};
constinit thread_local Thread thread;

/// A range that any thread may end. The name is that of the log, as above.
struct Started {
  static constexpr std::uint64_t isFree = 0, isBeingWritten = 1;
  std::atomic<std::uint64_t> number{isFree};
  std::atomic<std::uint32_t> log{0}, name{0};
  std::atomic<std::int64_t> begin{0};
  std::atomic<int> shown{instrument::RangeLog::noPlace};
};
constinit Started started[Ranges::mostStarted];
constinit std::atomic<std::uint64_t> starts{0};

Nanoseconds now() {
  return SystemClock::instance().now();
}

/// Holds the log in place while it is written to.
class Use {
 public:
  Use() {
    users.fetch_add(1, std::memory_order_seq_cst);
    log_ = currentLog.load(std::memory_order_seq_cst);
    epoch_ = logs.load(std::memory_order_relaxed);
    if (log_ && thread.log != epoch_) {
      thread.log = epoch_;
      thread.depth = 0;
      thread.number = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    }
  }
  ~Use() { users.fetch_sub(1, std::memory_order_release); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  instrument::RangeLog* log() const { return log_; }
  std::uint32_t epoch() const { return epoch_; }

 private:
  instrument::RangeLog* log_;
  std::uint32_t epoch_;
};

/// What a range of this name begins with; one that is not recorded only takes its place among the open ones.
Open opened(const Use& use, const void* domain, instrument::RangeName* name) {
  if (!name || name->isMuted(use.epoch())) return {domain, 0, 0, false};
  const Nanoseconds begin = now();
  if (!name->admit(density, use.epoch(), begin)) return {domain, 0, 0, false};
  return {domain, begin.count(), name->numberIn(*use.log(), use.epoch()), true};
}

std::int8_t shown(const Use& use, const Open& range, int depth) {
  static_assert(instrument::RangeLogHeader::mostOpen <= 127);
  return static_cast<std::int8_t>(use.log()->showOpen(
      {range.name, static_cast<std::uint32_t>(depth), Nanoseconds(range.begin), {}}, thread.number));
}

void open(const Use& use, Open range) {
  if (thread.depth < deepest) {
    if (range.recorded) range.shown = shown(use, range, thread.depth);
    thread.open[thread.depth] = range;
  }
  ++thread.depth;
}

/// False: this thread has no range of the domain open.
bool close(const Use& use, const void* domain) {
  if (thread.depth > deepest) {
    --thread.depth;
    return true;
  }
  int found = thread.depth - 1;
  while (found >= 0 && thread.open[found].domain != domain) --found;
  if (found < 0) return false;
  const Open range = thread.open[found];
  std::copy(thread.open + found + 1, thread.open + thread.depth, thread.open + found);
  --thread.depth;
  if (range.recorded) {
    use.log()->hideOpen(range.shown);
    use.log()->write({range.name, static_cast<std::uint32_t>(found), Nanoseconds(range.begin), now()});
  }
  return true;
}

/// A place for a range, which is being written then; null: none is free.
Started* claim(std::uint64_t number, std::uint32_t epoch) {
  constexpr std::uint32_t tries = 16;
  for (std::uint32_t i = 0; i < tries; ++i) {
    Started& place = started[(number + i) % Ranges::mostStarted];
    std::uint64_t seen = place.number.load(std::memory_order_acquire);
    if (seen == Started::isBeingWritten) continue;
    const bool isFree = seen == Started::isFree || place.log.load(std::memory_order_relaxed) != epoch;
    if (isFree && place.number.compare_exchange_strong(seen, Started::isBeingWritten, std::memory_order_acq_rel))
      return &place;
  }
  return nullptr;
}

}  // namespace

bool Ranges::areRecorded() noexcept {
  return currentLog.load(std::memory_order_relaxed) != nullptr;
}

void Ranges::begin(const char* name) {
  if (!areRecorded()) return;
  const Use use;
  if (!use.log()) return;
  Open range{&ourDomain, 0, 0, true};
  if (thread.depth < deepest) range = {&ourDomain, now().count(), use.log()->nameOf(name), true};
  open(use, range);
}

Status Ranges::end() {
  if (!areRecorded()) return {};
  const Use use;
  if (!use.log() || close(use, &ourDomain)) return {};
  static constinit std::atomic<bool> told{false};
  auto error = Error::invalidUsage(
      "ncclFalconRangeEnd: this thread has no range open; was it begun on another thread, or before the first "
      "communicator?");
  return told.exchange(true) ? error : log::decided(std::move(error));
}

bool Ranges::isShallow() noexcept {
  return thread.depth < levels || thread.log != logs.load(std::memory_order_relaxed);
}

void Ranges::push(const void* domain, instrument::RangeName* name) noexcept {
  if (!areRecorded()) return;
  const Use use;
  if (use.log()) open(use, opened(use, domain, name));
}

void Ranges::pop(const void* domain) noexcept {
  if (!areRecorded()) return;
  const Use use;
  if (use.log()) close(use, domain);
}

std::uint64_t Ranges::start(instrument::RangeName* name) noexcept {
  if (!areRecorded()) return 0;
  const Use use;
  if (!use.log()) return 0;
  const Open range = opened(use, nullptr, name);
  if (!range.recorded) return 0;
  const std::uint64_t first = starts.fetch_add(1, std::memory_order_relaxed) % mostStarted;
  Started* const place = claim(first, use.epoch());
  if (!place) return 0;
  // The low part says where it is; the rest makes it another number than that of any range there before.
  static constinit std::atomic<std::uint64_t> generations{0};
  const auto generation = generations.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint64_t number = generation * mostStarted + static_cast<std::uint64_t>(place - started);
  place->log.store(use.epoch(), std::memory_order_relaxed);
  place->name.store(range.name, std::memory_order_relaxed);
  place->begin.store(range.begin, std::memory_order_relaxed);
  place->shown.store(shown(use, range, 0), std::memory_order_relaxed);
  place->number.store(number, std::memory_order_release);
  return number;
}

void Ranges::stop(std::uint64_t range) noexcept {
  if (range < mostStarted || !areRecorded()) return;
  const Use use;
  if (!use.log()) return;
  Started& place = started[range % mostStarted];
  if (place.number.load(std::memory_order_acquire) != range) return;
  const std::uint32_t name = place.name.load(std::memory_order_relaxed),
                      log = place.log.load(std::memory_order_relaxed);
  const Nanoseconds begin(place.begin.load(std::memory_order_relaxed));
  const int shown = place.shown.load(std::memory_order_relaxed);
  if (!place.number.compare_exchange_strong(range, Started::isFree, std::memory_order_acq_rel)) return;
  if (log != use.epoch()) return;
  use.log()->hideOpen(shown);
  use.log()->write({name, 0, begin, now()});
}

bool Ranges::useLog(instrument::RangeLog* log) {
  if (log) {
    logs.fetch_add(1, std::memory_order_relaxed);
    currentLog.store(log, std::memory_order_seq_cst);
    return true;
  }
  currentLog.store(nullptr, std::memory_order_seq_cst);
  constexpr int patience = 1000;  // 0.1 s
  for (int i = 0; users.load(std::memory_order_acquire) > 0; ++i) {
    if (i == patience) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

void Ranges::childBegins() {
  currentLog.store(nullptr, std::memory_order_relaxed);
  users.store(0, std::memory_order_relaxed);
}

}  // namespace falcon::control
