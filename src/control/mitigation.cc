#include "control/mitigation.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "control/role_baselines.h"

namespace falcon::control {
namespace {

using rebalance::PlanKind;

// How far beyond the members' counters a change takes effect: they move on while the proposal travels.
constexpr std::uint64_t iterationMargin = 1;
constexpr std::uint64_t collectiveMargin = 8;
constexpr Nanoseconds leastAgreementLimit = 5s;
constexpr Nanoseconds retryPause = 1s;
// A state of hundreds of gigabytes goes over a network for minutes.
constexpr Nanoseconds exchangeLimit = std::chrono::minutes(10);

double lossOf(CulpritKind kind, std::span<const FailSlow> failSlows) {
  double loss = 0;
  for (const FailSlow& each : failSlows)
    if (each.culprit.kind == kind) loss = std::max(loss, each.lossSeconds);
  return loss;
}

const char* actionOf(const rebalance::Plan& plan) {
  if (plan.kind == PlanKind::restart) return "restart";
  if (plan.kind == PlanKind::swap) return "swap";
  return plan.kind == PlanKind::reroute ? "reroute" : "split";
}

}  // namespace

Mitigation::Progress Mitigation::tick(std::span<const FailSlow> failSlows, double healthySeconds,
                                      double currentSeconds) {
  if (exchange_) return finishExchange(failSlows);
  if (agreeing()) return finish(failSlows);
  if (settings_.mode == MitigateMode::off) return Progress::idle;
  if (clock_.now() < notBefore_) return Progress::idle;
  if (outdated_) plan(failSlows);
  const auto isReady = [&](const Step& step) {
    return step.undo || isDue(step.plan, lossOf(step.plan.against, failSlows), healthySeconds);
  };
  for (auto ready = std::find_if(steps_.begin(), steps_.end(), isReady); ready != steps_.end();
       ready = std::find_if(steps_.begin(), steps_.end(), isReady)) {
    const Step step = *ready;
    steps_.erase(ready);
    const bool words = step.plan.kind == PlanKind::none || step.plan.kind == PlanKind::advise;
    if (words || settings_.mode == MitigateMode::advise) {
      advise(step.plan, failSlows);
      continue;
    }
    start(step, currentSeconds);
    return Progress::agreeing;
  }
  return Progress::idle;
}

void Mitigation::plan(std::span<const FailSlow> failSlows) {
  outdated_ = false;
  steps_.clear();
  std::vector<Culprit> culprits;
  for (const FailSlow& each : failSlows) culprits.push_back(each.culprit);
  const rebalance::JobFacts facts = jobFactsOf(job_, settings_.window, settings_.deterministic);
  for (rebalance::Plan& undo : rebalance::undoFor(facts, culprits)) steps_.push_back({std::move(undo), true});
  for (rebalance::Plan& plan : rebalance::plansFor(facts, culprits)) {
    const bool words = plan.kind == PlanKind::none || plan.kind == PlanKind::advise;
    if (!words || newcomer_) steps_.push_back({std::move(plan), false});
  }
  newcomer_ = false;
}

void Mitigation::advise(const rebalance::Plan& plan, std::span<const FailSlow> failSlows) {
  const std::string text = plan.kind == PlanKind::reroute             ? "re-route " + plan.reason
                           : plan.kind == PlanKind::splitMicroBatches ? "these would help: " + plan.reason
                           : plan.kind == PlanKind::restart           ? "a restart would help: " + plan.reason
                           : plan.kind == PlanKind::swap              ? "this would help: " + plan.reason
                                                                      : plan.reason;
  tell_({.kind = EventKind::mitigationAdvised, .culprit = concerned({plan, false}, failSlows), .text = text});
}

Culprit Mitigation::concerned(const Step& step, std::span<const FailSlow> failSlows) const {
  const CulpritKind kind = step.plan.against;
  if (step.undo) {
    for (auto culprit = relieved_.rbegin(); culprit != relieved_.rend(); ++culprit)
      if (culprit->kind == kind) return *culprit;
    return {};
  }
  for (auto each = failSlows.rbegin(); each != failSlows.rend(); ++each)
    if (each->culprit.kind == kind) return each->culprit;
  return {};
}

void Mitigation::start(Step step, double currentSeconds) {
  const Nanoseconds limit = std::max(leastAgreementLimit, fromSeconds(3 * currentSeconds));
  const auto agree = [&](Agreement::Subject subject, std::set<ProcessId> members, std::uint64_t margin) {
    agreements_.push_back(
        std::make_unique<Agreement>(nextId_(), std::move(subject), std::move(members), margin, clock_, limit, outbox_));
  };
  const rebalance::Plan& plan = step.plan;
  if (plan.kind == PlanKind::splitMicroBatches)
    agree({AgreementKind::microBatches, 0, {plan.microBatches.begin(), plan.microBatches.end()}}, job_.allProcesses(),
          iterationMargin);
  if (plan.kind == PlanKind::restart)
    agree({AgreementKind::restart, 0, {plan.leaveOut.begin(), plan.leaveOut.end()}}, job_.allProcesses(),
          iterationMargin);
  if (plan.kind == PlanKind::swap)
    agree({AgreementKind::roles, 0, {plan.roles.begin(), plan.roles.end()}}, job_.allProcesses(), iterationMargin);
  for (const RingPlan& ring : plan.rings)
    if (const auto communicator = job_.communicators().find(ring.communicator);
        communicator != job_.communicators().end())
      agree({AgreementKind::ring, ring.communicator, {ring.order.begin(), ring.order.end()}},
            job_.processesOf(communicator->second), collectiveMargin);
  inHand_ = std::move(step);
}

Mitigation::Progress Mitigation::finish(std::span<const FailSlow> failSlows) {
  bool all = true;
  for (auto& agreement : agreements_) {
    agreement->tick();
    all = all && agreement->finished();
  }
  if (!all) return Progress::agreeing;
  std::size_t committed = 0;
  for (const auto& agreement : agreements_) {
    if (agreement->state() != Agreement::State::committed) continue;
    ++committed;
    putInForce(*agreement);
  }
  const std::size_t wanted = agreements_.size();
  agreements_.clear();
  if (committed < wanted) {
    const std::string what = committed == 0 ? "no change" : fmt::format("{} of {} rings changed", committed, wanted);
    (void)refused(what + ": not all ranks agreed in time", failSlows);
    return committed > 0 ? Progress::changed : Progress::idle;
  }
  if (exchange_) return Progress::agreeing;
  applied(failSlows);
  return Progress::changed;
}

/// What is left of it is planned anew, with new counters.
Mitigation::Progress Mitigation::refused(const std::string& what, std::span<const FailSlow> failSlows) {
  ++counts_[{actionOf(inHand_.plan), "refused"}];
  const bool again = ++tries_ < attempts;
  tell_({.kind = EventKind::mitigationRefused,
         .culprit = concerned(inHand_, failSlows),
         .action = actionOf(inHand_.plan),
         .text = fmt::format("{}{}: {}", what, again ? "" : fmt::format(", {} times; left as it is", attempts),
                             inHand_.plan.reason)});
  outdated_ = again;
  notBefore_ = clock_.now() + retryPause * tries_;
  if (!again) steps_.clear();
  return Progress::idle;
}

void Mitigation::applied(std::span<const FailSlow> failSlows) {
  tries_ = 0;
  const bool undo = inHand_.undo, reroute = inHand_.plan.kind == PlanKind::reroute;
  if (inHand_.plan.kind == PlanKind::restart)
    inHand_.plan.reason =
        fmt::format("restarts, {}; slowness has cost {:.1f} s, as much as the price of {:.1f} s", inHand_.plan.reason,
                    lossOf(inHand_.plan.against, failSlows), inHand_.plan.priceSeconds);
  ++counts_[{actionOf(inHand_.plan), undo ? "undone" : "applied"}];
  tell_({.kind = undo ? EventKind::mitigationUndone : EventKind::mitigationApplied,
         .culprit = concerned(inHand_, failSlows),
         .action = actionOf(inHand_.plan),
         .text = (reroute && !undo ? "re-routed " : "") + inHand_.plan.reason});
  if (undo) std::erase_if(relieved_, [&](const Culprit& each) { return each.kind == inHand_.plan.against; });
}

/// Every rank says how it went, at the beginning of the iteration that was agreed on.
Mitigation::Progress Mitigation::finishExchange(std::span<const FailSlow> failSlows) {
  const bool late = clock_.now() >= exchange_->until;
  if (!exchange_->awaited.empty() && !late) return Progress::agreeing;
  const Exchange exchange = *std::exchange(exchange_, std::nullopt);
  if (!exchange.problem.empty() || late)
    return refused(fmt::format("no role was exchanged: {}",
                               late ? "not all ranks have told how it went" : exchange.problem.c_str()),
                   failSlows);
  moveBaselines(job_, exchange.communicators, exchange.roles, rolesOf(job_));
  for (auto& [process, member] : job_.members()) member.reshapeSeconds = exchange.seconds;
  inHand_.plan.reason += fmt::format("; it took {:.2f} s", exchange.seconds);
  applied(failSlows);
  return Progress::changed;
}

void Mitigation::putInForce(const Agreement& agreement) {
  const Agreement::Subject& subject = agreement.subject();
  if (subject.kind == AgreementKind::ring) {
    if (const auto found = job_.communicators().find(subject.communicator); found != job_.communicators().end())
      found->second.ring.assign(subject.values.begin(), subject.values.end());
    return;
  }
  if (subject.kind == AgreementKind::restart) return;
  if (subject.kind == AgreementKind::roles) {
    exchange_ = Exchange{.agreement = agreement.id(),
                         .communicators = job_.communicators(),
                         .roles = rolesOf(job_),
                         .awaited = job_.allProcesses(),
                         .until = clock_.now() + exchangeLimit};
    return;
  }
  for (auto& [process, member] : job_.members())
    if (member.layout) member.layout->split = subject.values;
}

void Mitigation::handle(ProcessId from, const Counter& counter) {
  for (auto& agreement : agreements_) agreement->handle(from, counter);
}

void Mitigation::handle(ProcessId from, const Vote& vote) {
  for (auto& agreement : agreements_) agreement->handle(from, vote);
}

void Mitigation::handle(ProcessId from, const Reshaped& outcome) {
  if (!exchange_ || exchange_->agreement != outcome.agreement || exchange_->awaited.erase(from) == 0) return;
  exchange_->seconds = std::max(exchange_->seconds, outcome.seconds);
  if (!outcome.done && exchange_->problem.empty()) exchange_->problem = outcome.problem;
}

void Mitigation::left(ProcessId process) {
  if (exchange_) exchange_->awaited.erase(process);
  for (auto& agreement : agreements_) agreement->left(process);
}

void Mitigation::abandon() {
  exchange_.reset();
  for (auto& agreement : agreements_) agreement->abort();
  agreements_.clear();
}

}  // namespace falcon::control
