// What a process knows of how agreements ended.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "control/messages.h"

namespace falcon::control {

/// The newest decisions, those that this process obeyed and those that it made as the controller: when a controller is
/// gone, its successor asks what was decided (see Recall). Used by the monitor's thread alone.
class DecisionBook {
 public:
  /// More than can be on their way at once: members vote on the next agreement only when they have heard of the last.
  static constexpr std::size_t most = 64;

  /// The first word on an agreement stands.
  void note(const Decide& decision) {
    if (find(decision.agreement)) return;
    decisions_.push_back(decision);
    if (decisions_.size() > most) decisions_.pop_front();
  }
  std::optional<bool> find(std::uint64_t agreement) const {
    for (const Decide& each : decisions_)
      if (each.agreement == agreement) return each.commit;
    return std::nullopt;
  }
  std::vector<Decide> decisions() const { return {decisions_.begin(), decisions_.end()}; }

 private:
  std::deque<Decide> decisions_;
};

}  // namespace falcon::control
