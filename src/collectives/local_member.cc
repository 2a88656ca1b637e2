#include "collectives/local_member.h"

#include <thread>

namespace falcon::collectives {
namespace {

// For the network to tell why, where another rank has left because it heard so.
constexpr Nanoseconds causePatience = 200ms;

}  // namespace

Error LocalMember::whatBroke() {
  const auto failure = network.failure();
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = *failure;
  broken_.store(true, std::memory_order_relaxed);
  return *error_;
}

void LocalMember::awaitCause() const {
  const Nanoseconds until = SystemClock::instance().now() + causePatience;
  while (isHealthy() && SystemClock::instance().now() < until) std::this_thread::sleep_for(1ms);
}

Error LocalMember::fail(const Error& error) {
  // Ranks that compare their calls leave as soon as one of them has found a difference: which, says that one.
  if (shape.checksCalls && error.code() == ErrorCode::remote) awaitCause();
  // A dead peer shows at the ports too, and often first; the network knows better who died.
  if (const Status known = health(); !known) return known.error();
  const Error first = [&] {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    broken_.store(true, std::memory_order_relaxed);
    return *error_;
  }();
  network.abort(first.message());
  return first;
}

void LocalMember::revoke() {
  const std::lock_guard lock(mutex_);
  revoked_.store(true, std::memory_order_relaxed);
  if (!error_) error_ = Error::invalidUsage("the communicator was revoked by rank {}", shape.rank);
  broken_.store(true, std::memory_order_relaxed);
  // Else who still waits for this rank would take its leaving for that of one that has done all it had to.
  if (direct) direct->board().giveUp();
}

}  // namespace falcon::collectives
