// The out-of-band network of one communicator: members, all-gather, barrier, liveness, abort.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "bootstrap/unique_id.h"

namespace falcon::bootstrap {

/// Asked about ten times a second by who waits; an error ends the wait. An empty one never does.
using GivenUp = std::function<std::optional<Error>()>;

/// A star around rank 0's reactor. When a member dies (EOF, reset, silent host) rank 0 tells the others; when rank 0
/// dies all see it. A member that leaves in good order says goodbye first: that is no death. When rank 0 has left and
/// its process has ended, the lowest rank that is left tells the others from then on.
class CommunicatorNetwork {
 public:
  virtual ~CommunicatorNetwork() = default;  ///< says goodbye

  virtual CommunicatorId id() const = 0;
  virtual const transport::Secret& secret() const = 0;
  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  /// Everyone's bytes, by rank. Collective, blocking; ends with a remote error when a member dies, and for all, as the
  /// whole network does, when `limit` passes or a member gives up: what some have done cannot be repeated.
  virtual Result<std::vector<std::string>> allGather(std::string_view mine, Nanoseconds limit,
                                                     const GivenUp& givenUp = {}) = 0;
  Status barrier(Nanoseconds limit);

  /// A new network of those with the same colour (>= 0), ranked by key, then by old rank; null for a negative colour.
  /// Collective over all members.
  virtual Result<std::shared_ptr<CommunicatorNetwork>> split(int color, int key, Nanoseconds limit,
                                                             const GivenUp& givenUp = {}) = 0;

  /// A new network without the ranks of `excluded` (in rising order), which do not call; the others keep their order.
  /// All of them call with the same list. Needs nothing of this network but what it knew at its beginning, so it works
  /// when this one is broken and when rank 0 has gone.
  virtual Result<std::shared_ptr<CommunicatorNetwork>> shrink(std::span<const Rank> excluded, Nanoseconds limit,
                                                              const GivenUp& givenUp) = 0;

  /// Who counts the shrinks with this list by itself: so many were asked for before the next one, though some may never
  /// have been begun on this rank. Without it those that were begun are counted.
  virtual void shrinksWere(std::span<const Rank>, std::uint64_t) {}

  /// Whether that rank has said goodbye, as far as this one knows: whatever it waits for, it must have done before.
  virtual bool hasLeft(Rank) const { return false; }

  /// From now on its end waits for no other member: to those who do not read, it may be a death.
  virtual void waitForNobody() {}

  /// Breaks the communicator on all members.
  virtual void abort(std::string_view reason) = 0;
  /// What broke it, if anything.
  virtual std::optional<Error> failure() const = 0;
  /// Whether anything did: one load, for wait loops and short calls.
  virtual bool isBroken() const { return failure().has_value(); }
  /// Runs `handler` once, on the reactor's thread, when the communicator breaks (at once if it has). Replaces the last
  /// one; after the call returns the replaced one is not running.
  virtual void onFailure(std::function<void(const Error&)> handler) = 0;
  /// Runs `handler` on the reactor's thread for each member that says goodbye, or has before. Whatever it has sent was
  /// on its way before. Replaces the last one, which may still be running.
  virtual void onDeparture(std::function<void(Rank)> handler) = 0;
};

/// Joins `size` ranks by unique id. Blocking; every rank must call. Errors name rank and address; a second process that
/// claims the same rank and a wrong size are invalidUsage on all. Gives up soon after `givenUp()` says so; that is
/// asked about ten times a second. `met()` is called when all have come, before the network is formed.
Result<std::shared_ptr<CommunicatorNetwork>> join(
    std::shared_ptr<transport::Reactor> reactor, const UniqueId& id, Rank rank, int size, Nanoseconds limit,
    const std::function<bool()>& givenUp = [] { return false; }, const std::function<void()>& met = [] {});

/// For a rank that cannot even begin to join, as join() does itself where it cannot go on: tells the others why, so
/// that they do not wait for it. Takes 5 s at most.
void withdraw(const UniqueId& id, Rank rank, int size, const Error& why);

/// The trivial network of a single rank, under an id of its own: an application may use one unique id for several such
/// communicators. Errors (system): the kernel gives no random bytes.
Result<std::shared_ptr<CommunicatorNetwork>> aloneNetwork();

}  // namespace falcon::bootstrap
