#include "transport/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <new>

#include "base/log.h"
#include "base/random.h"

namespace falcon::transport {
namespace {

// Not the private kind of futex: the word is shared between processes.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* limit) {
  static_assert(sizeof word == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
  return syscall(SYS_futex, &word, operation, value, limit, nullptr, 0);
}

/// What a process has one of. Never freed: threads may still wait while the process exits.
struct ProcessState {
  pid_t process = 0;
  const Result<std::uint64_t> identity = randomValue<std::uint64_t>();
  std::unique_ptr<Doorbell> doorbell;
  ProcessState* parents = nullptr;  // of the process that this one was forked from
};

std::atomic<ProcessState*> processState{nullptr};

std::unique_ptr<ProcessState> makeProcessState() {
  auto state = std::make_unique<ProcessState>();
  state->process = getpid();
  auto doorbell = Doorbell::create();
  // Not even private memory: the process is about to end for want of memory anyway.
  if (!doorbell) throw std::bad_alloc();
  state->doorbell = std::move(*doorbell);
  return state;
}

// Without a lock: the process may have been forked while another thread held it.
ProcessState& currentState() {
  ProcessState* known = processState.load(std::memory_order_acquire);
  const pid_t process = getpid();
  while (known == nullptr || known->process != process) [[unlikely]] {
      auto fresh = makeProcessState();
      fresh->parents = known;
      if (processState.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) {
        if (known != nullptr) known->doorbell->dropName();
        known = fresh.release();
      }
    }
  return *known;
}

}  // namespace

Doorbell::Doorbell(SharedSegment segment)
    : segment_(std::move(segment)), words_(reinterpret_cast<Words*>(segment_.memory().data())) {}

Result<std::unique_ptr<Doorbell>> Doorbell::create() {
  auto segment = SharedSegment::create(sizeof(Words));
  if (!segment) {
    log::notice("{}; on host memory peers of this node are reached by sockets", segment.error().message());
    segment = SharedSegment::createPrivate(sizeof(Words));
  }
  if (!segment) return segment.error();
  new (segment->memory().data()) Words{};
  return std::unique_ptr<Doorbell>(new Doorbell(std::move(*segment)));
}

Result<std::unique_ptr<Doorbell>> Doorbell::open(const std::string& name) {
  auto segment = SharedSegment::open(name, sizeof(Words));
  if (!segment) return segment.error();
  return std::unique_ptr<Doorbell>(new Doorbell(std::move(*segment)));
}

void Doorbell::ring() {
  // Both sides do a sequentially consistent step on one word before they look at the other, so either the ringer sees
  // the waiter or the waiter's futex call sees the ring.
  words_->rings.fetch_add(1, std::memory_order_seq_cst);
  if (words_->waiters.load(std::memory_order_seq_cst) > 0) futex(words_->rings, FUTEX_WAKE, INT_MAX, nullptr);
}

std::uint32_t Doorbell::ticket() const {
  return words_->rings.load(std::memory_order_acquire);
}

void Doorbell::wait(std::uint32_t ticket, Nanoseconds limit) {
  if (limit <= Nanoseconds::zero() || words_->rings.load(std::memory_order_acquire) != ticket) return;
  const auto wholeSeconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec relative{static_cast<time_t>(wholeSeconds.count()), static_cast<long>((limit - wholeSeconds).count())};
  words_->waiters.fetch_add(1, std::memory_order_seq_cst);
  futex(words_->rings, FUTEX_WAIT, ticket, &relative);
  words_->waiters.fetch_sub(1, std::memory_order_relaxed);
}

Doorbell& processDoorbell() {
  return *currentState().doorbell;
}

const Result<std::uint64_t>& processIdentity() {
  return currentState().identity;
}

}  // namespace falcon::transport
