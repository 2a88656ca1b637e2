// Draining: brings every rank to a consistent cut, where whatever anybody has entered, all who take part have entered.
// Then nothing is under way, and rings or communicators can be replaced. Pure; modelled in tests/model/drain.pml.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>

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

/// One rank's side: asked before each outermost group (or single call), which is one event and indivisible.
/// Not thread-safe: what is asked, what is counted and what is reported must be under one lock.
class DrainGate {
 public:
  /// @param concerns  whether this rank takes part in what the key counts
  explicit DrainGate(std::function<bool(const CountKey&)> concerns) : concerns_(std::move(concerns)) {}

  /// Whether the rank may enter its next event, whatever it is. While draining, only one that is below a target may:
  /// nobody knows what lies between its next event and the one that others wait for.
  bool mayEnter() const { return version_ == 0 || isBelow(); }
  void enter(std::span<const CountKey> event);

  /// From now on: targets of a version above 0, of rising versions. An older one is ignored.
  void order(std::uint64_t version, const Counts& targets);
  /// The drain is over, or was given up: everything goes on.
  void lift();

  /// To be said after each order and after each event entered while draining, also by a rank that is below: it may
  /// wait in an event that the others only enter when they have heard of it.
  struct Report {
    std::uint64_t version = 0;  ///< of the targets that were known
    bool below = false;
    Counts entered;
  };
  Report report() const { return {version_, isBelow(), entered_}; }

 private:
  bool isBelow() const;

  std::function<bool(const CountKey&)> concerns_;
  Counts entered_;
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
  /// True when the targets rose: all members are to be told the new ones.
  bool handle(bootstrap::ProcessId from, const DrainGate::Report& report);
  /// No member is below a target of the current version: nobody enters anything any more, and what was entered ends.
  bool reached() const { return settled_.size() == members_.size(); }

 private:
  const std::set<bootstrap::ProcessId> members_;
  Counts targets_;
  std::uint64_t version_ = 1;
  std::set<bootstrap::ProcessId> settled_;  ///< whose last report was for this version and not below it
};

}  // namespace falcon::control
