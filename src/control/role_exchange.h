// Ranks exchange their roles, all of them together: agreed on for the beginning of an iteration, and then followed
// until every rank has said how it went.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/agreement.h"
#include "control/job_view.h"
#include "control/place_exchange.h"

namespace falcon::control {

/// A part of the controller, as a state machine. What is known of the ranks goes with their roles (role_baselines.h).
class RoleExchange final : public PlaceExchange {
 public:
  using NextId = std::function<std::uint64_t()>;

  RoleExchange(JobView& job, const Clock& clock, Outbox& outbox, NextId nextId)
      : job_(job), clock_(clock), outbox_(outbox), nextId_(std::move(nextId)) {}

  std::optional<double> expectedSeconds() const override;
  Status begin(const rebalance::Plan& plan) override;
  State state() override;
  std::string outcome() const override { return outcome_; }
  std::vector<int> firstRoles() const override { return firstRoles_; }
  void abandon() override;

  void handle(ProcessId from, const Counter& counter);
  void handle(ProcessId from, const Vote& vote);
  void handle(ProcessId from, const Reshaped& outcome);
  void left(ProcessId process);

 private:
  /// What all have agreed to, and is on its way.
  struct Moving {
    std::map<CommunicatorId, CommunicatorFormed> communicators;  ///< before it
    std::vector<int> roles;                                      ///< before it, by job rank
    std::set<ProcessId> awaited;                                 ///< who has not said yet how it went
    double seconds = 0;
    std::string problem{};  ///< of whoever failed
  };
  State conclude();

  JobView& job_;
  const Clock& clock_;
  Outbox& outbox_;
  const NextId nextId_;
  std::optional<Agreement> agreement_;
  std::optional<Moving> moving_;
  std::vector<int> firstRoles_;  ///< where the program has exchanged them itself
  State state_ = State::failed;
  std::string outcome_;
};

}  // namespace falcon::control
