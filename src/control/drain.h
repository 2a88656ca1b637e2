// Draining: brings every rank to a consistent cut, where whatever anybody has entered, all who take part have entered.
// Then nothing is under way, and rings or communicators can be replaced. Pure; modelled in tests/model/drain.pml.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "base/call_counts.h"
#include "base/types.h"
#include "bootstrap/bus.h"

namespace falcon::control {

/// What is counted: the collectives of a communicator (from and to are -1), or its messages from one rank to another.
struct CountKey {
  CommunicatorId communicator = 0;
  Rank from = -1;
  Rank to = -1;
  auto operator<=>(const CountKey&) const = default;
};
/// How many were entered. A key that is not there stands for none.
using Counts = std::map<CountKey, std::uint64_t>;

/// One process's side: asked before each outermost group (or single call), which is one event and indivisible. A
/// process may have several communicators, and several ranks of one.
/// Not thread-safe: what is asked, what is counted and what is reported must be under one lock.
class DrainGate {
 public:
  /// A rank of this process in a communicator.
  struct Part {
    CommunicatorId communicator = 0;
    Rank rank = -1;
    auto operator<=>(const Part&) const = default;
  };

  /// `counts`: what it has entered; valid until remove().
  void add(Part part, const CallCounts& counts);
  void remove(Part part);
  std::vector<Part> parts() const;

  /// Whether the process may enter its next event, whatever it is. While draining, only one that is below a target may:
  /// nobody knows what lies between its next event and the one that others wait for.
  bool mayEnter() const { return version_ == 0 || isBelow(); }
  bool isBelow() const;
  /// A call was entered and has not been left.
  bool isInside() const;

  /// From now on these targets too: of a version above 0, of rising versions. An older one is ignored.
  void order(std::uint64_t version, const Counts& targets);
  /// The drain is over, or was given up: everything goes on.
  void lift();

  /// To be said after each order and after each event entered while draining, also by a process that is below: it may
  /// wait in an event that the others only enter when they have heard of it.
  struct Report {
    std::uint64_t version = 0;  ///< of the targets that were known
    bool below = false;
    Counts entered;
  };
  Report report() const { return {version_, isBelow(), entered()}; }

 private:
  struct Member {
    Part part;
    const CallCounts* counts = nullptr;
  };
  Counts entered() const;
  static void addCounts(const Member& member, Counts& sums);

  std::vector<Member> members_;
  std::deque<Counts> gone_;  ///< of the communicators removed last: their work may be under way still
  Counts targets_;
  std::uint64_t version_ = 0;
};

/// The controller's side. Targets are the largest counts that anybody has reported; ranks below run on, which may raise
/// other targets, until nothing changes. They rise no further than what the events already entered depend on.
class Drain {
 public:
  explicit Drain(std::set<bootstrap::ProcessId> members) : members_(std::move(members)) {}

  std::uint64_t version() const { return version_; }
  const Counts& targets() const { return targets_; }
  const std::set<bootstrap::ProcessId>& members() const { return members_; }
  /// True when the targets rose: all members are to be told the new ones. Strangers' reports do not count.
  bool handle(bootstrap::ProcessId from, const DrainGate::Report& report);
  /// Somebody's part was not known before: everybody is asked again.
  void askAgain();
  void join(bootstrap::ProcessId member) { members_.insert(member); }
  void leave(bootstrap::ProcessId member);
  bool hasSettled(bootstrap::ProcessId member) const { return settled_.contains(member); }
  /// No member is below a target of the current version: nobody enters anything any more, and what was entered ends.
  bool reached() const { return settled_.size() == members_.size(); }

 private:
  std::set<bootstrap::ProcessId> members_;
  Counts targets_;
  std::uint64_t version_ = 1;
  std::set<bootstrap::ProcessId> settled_;  ///< whose last report was for this version and not below it
};

}  // namespace falcon::control
