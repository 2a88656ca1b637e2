// What the planner has in force, what waits, and what it decided last: for people who ask why.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace falcon::control {

/// A remedy that waits until the loss has reached its price.
struct WaitingPlan {
  std::string strategy;  ///< nameOf(Strategy)
  double lossSeconds = 0, priceSeconds = 0;
  std::string text;
};

/// A decision: what, at which price and loss, what it is expected to gain, and why not where it was refused.
struct PlanDecision {
  double wallTime = 0;  ///< seconds since 1970
  std::string what;     ///< "planned", "waits", "applied", "refused", "undone", "advised", "cools down"
  std::string strategy;
  double lossSeconds = 0, priceSeconds = 0;
  double gain = 0;  ///< expected, share of what it is about; 0: not known
  std::string text;
};

struct PlanState {
  static constexpr std::size_t keptDecisions = 32;

  std::vector<std::string> inForce;  ///< in words, the oldest first
  std::vector<WaitingPlan> waiting;
  std::deque<PlanDecision> decisions;  ///< the newest keptDecisions, the oldest first
  std::uint64_t version = 0;           ///< counts up with every change but that of a waiting plan's loss

  void add(PlanDecision decision) {
    decisions.push_back(std::move(decision));
    if (decisions.size() > keptDecisions) decisions.pop_front();
    ++version;
  }
};

/// One line: "refused re-route: lost 12.3 s, price 0.5 s, gain 80 %: ring 0-2-1-3; not all ranks agreed in time".
std::string lineOf(const PlanDecision& decision);
/// A JSON object: in_force, waiting {strategy, loss_s, price_s, text}, decisions {wall_time_s, what, strategy, loss_s,
/// price_s, gain, text, line}.
std::string toJson(const PlanState& state);

}  // namespace falcon::control
