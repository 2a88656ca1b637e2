// What is done about the fail-slows known: plans, their prices, the agreements that carry them out, and the way back.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/agreement.h"
#include "control/decisions.h"
#include "control/fail_slow.h"
#include "control/place_exchange.h"
#include "control/plan_state.h"

namespace falcon::control {

enum class MitigateMode { off, advise, automatic };

struct MitigationSettings {
  MitigateMode mode = MitigateMode::advise;
  bool deterministic = false;
  std::size_t window = 4;  ///< iterations that a replica's time for a micro-batch is taken from
  /// Of an iteration: as long as it is this much slower, what was done helps too little.
  double leastLoss = 0.1;
  PlaceExchange* places = nullptr;  ///< null: nobody can exchange places
  std::function<double()> wallTime = [] { return 0.0; };
};

/// A part of the controller, as a state machine: plans once for each change of the culprits, waits until a plan's price
/// is reached, carries it out by agreement, takes back what no longer pays. What not all agree to is tried again a few
/// times, then left until the culprits change.
class Mitigation {
 public:
  enum class Progress { idle, agreeing, changed };  ///< changed: a plan has come into force, the iteration time with it
  using Tell = std::function<void(Event)>;
  using NextId = std::function<std::uint64_t()>;
  /// How often what, by action ("reroute", "split") and result ("applied", "refused", "undone").
  using Counts = std::map<std::pair<std::string, std::string>, int>;

  static constexpr int attempts = 5;

  Mitigation(const MitigationSettings& settings, JobView& job, const Clock& clock, Outbox& outbox, NextId nextId,
             Tell tell)
      : settings_(settings),
        job_(job),
        clock_(clock),
        outbox_(outbox),
        nextId_(std::move(nextId)),
        tell_(std::move(tell)) {}

  /// A culprit was named: also what cannot be done about it is said.
  void named() { newcomer_ = true, changed(); }
  /// One that is known was measured again.
  void changed() { outdated_ = true, tries_ = 0, notBefore_ = Nanoseconds(0); }
  /// This culprit is healthy again.
  void relieved(const Culprit& culprit);

  /// @param failSlows  all that are known and not relieved
  /// @param settled    currentSeconds is measured since the last remedy came into force
  Progress tick(std::span<const FailSlow> failSlows, double healthySeconds, double currentSeconds, bool settled = true);
  void handle(ProcessId from, const Counter& counter);
  void handle(ProcessId from, const Vote& vote);
  void left(ProcessId process);
  /// No change of what is not decided yet, anywhere. The members must not be left waiting for a decision.
  void abandon();

  bool agreeing() const { return !agreements_.empty() || exchanging_; }
  const Counts& counts() const { return counts_; }
  /// For people who ask why.
  const PlanState& planState() const { return state_; }

 private:
  struct Step {
    rebalance::Plan plan;
    bool undo = false;
  };

  void plan(std::span<const FailSlow> failSlows, double healthySeconds);
  double priceOf(const rebalance::Plan& plan) const { return control::priceOf(plan, healthySeconds_, prices_); }
  double threshold(const rebalance::Plan& plan, std::span<const FailSlow> failSlows) const;
  bool isReady(const Step& step, std::span<const FailSlow> failSlows, bool slowStill) const;
  void showWaiting(std::span<const FailSlow> failSlows);
  void note(const char* what, const rebalance::Plan& plan, std::span<const FailSlow> failSlows,
            const std::string& why = "");
  Progress finishExchange(std::span<const FailSlow> failSlows);
  Progress done(std::span<const FailSlow> failSlows);
  void advise(const rebalance::Plan& plan, std::span<const FailSlow> failSlows);
  void start(Step step, double currentSeconds);
  Progress finish(std::span<const FailSlow> failSlows);
  void putInForce(const Agreement& agreement);
  Culprit concerned(const Step& step, std::span<const FailSlow> failSlows) const;

  const MitigationSettings settings_;
  JobView& job_;
  const Clock& clock_;
  Outbox& outbox_;
  const NextId nextId_;
  const Tell tell_;

  bool outdated_ = false;  ///< the culprits changed since `steps_` were planned
  bool newcomer_ = false;  ///< one was named, so that also what cannot be done is said
  std::vector<Step> steps_;
  std::vector<Culprit> relieved_;  ///< since the last undo
  int tries_ = 0;
  Nanoseconds notBefore_{0};
  Step inHand_;
  std::vector<std::unique_ptr<Agreement>> agreements_;
  bool exchanging_ = false;  ///< inHand_ is carried out by settings_.places
  Nanoseconds started_{0};   ///< inHand_
  Counts counts_;
  double healthySeconds_ = 0;
  rebalance::Prices prices_;
  std::map<rebalance::Strategy, rebalance::CoolDown> coolDowns_;
  std::map<Culprit, Nanoseconds> knownSince_;
  std::map<CulpritKind, std::vector<double>> lasted_;  ///< seconds, of those that are over
  std::map<rebalance::Strategy, std::string> inForce_;
  PlanState state_;
};

}  // namespace falcon::control
