#include "control/mitigation.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace falcon::control {
namespace {

using rebalance::PlanKind;

/// As iterationMargin, in collectives.
constexpr std::uint64_t collectiveMargin = 8;
constexpr Nanoseconds retryPause = 1s;

double lossOf(CulpritKind kind, std::span<const FailSlow> failSlows) {
  double loss = 0;
  for (const FailSlow& each : failSlows)
    if (each.culprit.kind == kind) loss = std::max(loss, each.lossSeconds);
  return loss;
}

bool isWords(const rebalance::Plan& plan) {
  return plan.kind == PlanKind::none || plan.kind == PlanKind::advise;
}

const char* actionOf(const rebalance::Plan& plan) {
  if (plan.kind == PlanKind::swap) return "swap";
  if (plan.kind == PlanKind::restart) return "restart";
  return plan.kind == PlanKind::reroute ? "reroute" : "split";
}

}  // namespace

void Mitigation::relieved(const Culprit& culprit) {
  constexpr std::size_t mostKept = 64;
  relieved_.push_back(culprit);
  changed();
  const auto known = knownSince_.find(culprit);
  if (known == knownSince_.end()) return;
  std::vector<double>& lasted = lasted_[culprit.kind];
  lasted.push_back(seconds(clock_.now() - known->second));
  if (lasted.size() > mostKept) lasted.erase(lasted.begin());
  knownSince_.erase(known);
}

/// The loss at which it is bought: its price; where it is known how long such fail-slows last here, what that makes of
/// it.
double Mitigation::threshold(const rebalance::Plan& plan, std::span<const FailSlow> failSlows) const {
  constexpr std::size_t enough = 8;
  const double price = priceOf(plan);
  const auto lasted = lasted_.find(plan.against);
  if (lasted == lasted_.end() || lasted->second.size() < enough || price <= 0) return price;
  for (const FailSlow& each : failSlows) {
    if (each.culprit.kind != plan.against || each.slowMilliseconds <= each.healthyMilliseconds) continue;
    std::vector<double> losses = lasted->second;
    for (double& loss : losses) loss *= 1 - each.healthyMilliseconds / each.slowMilliseconds;
    return rebalance::thresholdsFor(std::vector<rebalance::Remedy>{{price, 0}}, losses).front();
  }
  return price;
}

bool Mitigation::isReady(const Step& step, std::span<const FailSlow> failSlows, bool slowStill) const {
  if (step.undo) return true;
  if (step.plan.ifTooLittle) {
    const bool before =
        std::any_of(steps_.begin(), steps_.end(), [](const Step& each) { return !each.plan.ifTooLittle; });
    if (before || !slowStill) return false;
  }
  if (const auto found = coolDowns_.find(strategyOf(step.plan));
      found != coolDowns_.end() && !isWords(step.plan) && !found->second.allows(clock_.now()))
    return false;
  return lossOf(step.plan.against, failSlows) >= threshold(step.plan, failSlows);
}

void Mitigation::note(const char* what, const rebalance::Plan& plan, std::span<const FailSlow> failSlows,
                      const std::string& why) {
  state_.add({settings_.wallTime(), what, rebalance::nameOf(strategyOf(plan)), lossOf(plan.against, failSlows),
              priceOf(plan), plan.gain, plan.reason + (why.empty() ? "" : "; " + why)});
}

void Mitigation::showWaiting(std::span<const FailSlow> failSlows) {
  state_.waiting.clear();
  for (const Step& step : steps_)
    if (!step.undo)
      state_.waiting.push_back({rebalance::nameOf(strategyOf(step.plan)), lossOf(step.plan.against, failSlows),
                                threshold(step.plan, failSlows), step.plan.reason});
}

Mitigation::Progress Mitigation::tick(std::span<const FailSlow> failSlows, double healthySeconds, double currentSeconds,
                                      bool settled) {
  healthySeconds_ = healthySeconds;
  if (exchanging_) return finishExchange(failSlows);
  if (agreeing()) return finish(failSlows);
  if (settings_.mode == MitigateMode::off) return Progress::idle;
  if (clock_.now() < notBefore_) return Progress::idle;
  if (outdated_) plan(failSlows, healthySeconds);
  // What programs outside of the job take of a host no remedy gives back: what is left may be that.
  const bool hostIsSlow = std::any_of(failSlows.begin(), failSlows.end(),
                                      [](const FailSlow& each) { return each.culprit.kind == CulpritKind::host; });
  const bool slowStill = settled && !hostIsSlow && currentSeconds >= healthySeconds * (1 + settings_.leastLoss);
  const auto ready = [&](const Step& step) { return isReady(step, failSlows, slowStill); };
  for (auto next = std::find_if(steps_.begin(), steps_.end(), ready); next != steps_.end();
       next = std::find_if(steps_.begin(), steps_.end(), ready)) {
    const Step step = *next;
    steps_.erase(next);
    if (isWords(step.plan) || settings_.mode == MitigateMode::advise) {
      advise(step.plan, failSlows);
      note("advised", step.plan, failSlows);
      continue;
    }
    start(step, currentSeconds);
    if (!agreeing()) {
      note("refused", step.plan, failSlows, "it could not be begun");
      advise(step.plan, failSlows);
      continue;
    }
    showWaiting(failSlows);
    return Progress::agreeing;
  }
  showWaiting(failSlows);
  return Progress::idle;
}

void Mitigation::plan(std::span<const FailSlow> failSlows, double healthySeconds) {
  healthySeconds_ = healthySeconds;
  outdated_ = false;
  steps_.clear();
  std::vector<Culprit> culprits;
  for (const FailSlow& each : failSlows) {
    culprits.push_back(each.culprit);
    knownSince_.try_emplace(each.culprit, clock_.now());
  }
  rebalance::JobFacts facts = jobFactsOf(job_, settings_.window, settings_.deterministic, culprits);
  if (settings_.places) {
    facts.swapSeconds = settings_.places->expectedSeconds();
    facts.firstRoles = settings_.places->firstRoles();
  }
  for (rebalance::Plan& undo : rebalance::undoFor(facts, culprits)) steps_.push_back({std::move(undo), true});
  for (rebalance::Plan& plan : rebalance::plansFor(facts, culprits)) {
    // Advice that nobody has followed has not helped too little.
    if (plan.ifTooLittle && settings_.mode == MitigateMode::advise) continue;
    if (!isWords(plan) || newcomer_) {
      const auto coolDown = coolDowns_.find(strategyOf(plan));
      const bool cools = coolDown != coolDowns_.end() && !coolDown->second.allows(clock_.now());
      note(cools ? "cools down" : "planned", plan, failSlows,
           cools ? fmt::format("for {:.0f} s more, as it did not pay the last time",
                               seconds(coolDown->second.until() - clock_.now()))
                 : "");
      steps_.push_back({std::move(plan), false});
    }
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
    return relieved_.empty() ? Culprit{} : relieved_.back();  // roles are taken back once nobody is slow
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
  for (const RingPlan& ring : plan.rings)
    if (const auto communicator = job_.communicators().find(ring.communicator);
        communicator != job_.communicators().end())
      agree({AgreementKind::ring, ring.communicator, {ring.order.begin(), ring.order.end()}},
            job_.processesOf(communicator->second), collectiveMargin);
  if (plan.kind == PlanKind::swap) exchanging_ = settings_.places && settings_.places->begin(plan);
  started_ = clock_.now();
  inHand_ = std::move(step);
}

Mitigation::Progress Mitigation::finishExchange(std::span<const FailSlow> failSlows) {
  const PlaceExchange::State state = settings_.places->state();
  if (state == PlaceExchange::State::working) return Progress::agreeing;
  exchanging_ = false;
  const std::string outcome = settings_.places->outcome();
  if (state == PlaceExchange::State::done) {
    if (!outcome.empty()) inHand_.plan.reason += "; " + outcome;
    return done(failSlows);
  }
  const std::string why = "everybody stays in the old places" + (outcome.empty() ? "" : ", since " + outcome);
  ++counts_[{actionOf(inHand_.plan), "refused"}];
  note("refused", inHand_.plan, failSlows, why);
  tell_({.kind = EventKind::mitigationRefused,
         .culprit = concerned(inHand_, failSlows),
         .action = actionOf(inHand_.plan),
         .text = "no change: " + why + ": " + inHand_.plan.reason});
  // Also what is to be taken back is tried again.
  outdated_ = ++tries_ < attempts;
  notBefore_ = clock_.now() + retryPause * tries_;
  return Progress::idle;
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
  const Culprit culprit = concerned(inHand_, failSlows);
  if (committed < wanted) {
    note("refused", inHand_.plan, failSlows, "not all ranks agreed in time");
    ++counts_[{actionOf(inHand_.plan), "refused"}];
    const bool again = ++tries_ < attempts;
    std::string what = committed == 0 ? "no change" : fmt::format("{} of {} rings changed", committed, wanted);
    tell_({.kind = EventKind::mitigationRefused,
           .culprit = culprit,
           .action = actionOf(inHand_.plan),
           .text = fmt::format("{}: not all ranks agreed in time{}: {}", what,
                               again ? "" : fmt::format(", {} times; left as it is", attempts), inHand_.plan.reason)});
    // What is left of it is planned anew, with new counters.
    outdated_ = again;
    notBefore_ = clock_.now() + retryPause * tries_;
    if (!again) steps_.clear();
    return committed > 0 ? Progress::changed : Progress::idle;
  }
  return done(failSlows);
}

Mitigation::Progress Mitigation::done(std::span<const FailSlow> failSlows) {
  const bool undo = inHand_.undo, reroute = inHand_.plan.kind == PlanKind::reroute;
  const Culprit culprit = concerned(inHand_, failSlows);
  const rebalance::Strategy strategy = strategyOf(inHand_.plan);
  tries_ = 0;
  if (undo) {
    coolDowns_[strategy].undone(clock_.now(), priceOf(inHand_.plan));
    inForce_.erase(strategy);
  } else {
    // What a restart took, the next run measures.
    if (strategy != rebalance::Strategy::restart)
      prices_.took(strategy, seconds(clock_.now() - started_), healthySeconds_,
                   inHand_.plan.priceSeconds > 0 ? std::optional(inHand_.plan.priceSeconds) : std::nullopt);
    coolDowns_[strategy].applied(clock_.now());
    // A split that is in force was of those who had the roles before.
    outdated_ = outdated_ || strategy == rebalance::Strategy::changeTopology;
    inForce_[strategy] = inHand_.plan.reason;
  }
  note(undo ? "undone" : "applied", inHand_.plan, failSlows);
  state_.inForce.clear();
  for (const auto& [each, reason] : inForce_) state_.inForce.push_back(reason);
  if (inHand_.plan.kind == PlanKind::restart)
    inHand_.plan.reason =
        fmt::format("restarts, {}; slowness has cost {:.1f} s, as much as the price of {:.1f} s", inHand_.plan.reason,
                    lossOf(inHand_.plan.against, failSlows), inHand_.plan.priceSeconds);
  ++counts_[{actionOf(inHand_.plan), undo ? "undone" : "applied"}];
  tell_({.kind = undo ? EventKind::mitigationUndone : EventKind::mitigationApplied,
         .culprit = culprit,
         .action = actionOf(inHand_.plan),
         .text = (reroute && !undo ? "re-routed " : "") + inHand_.plan.reason});
  if (undo) std::erase_if(relieved_, [&](const Culprit& each) { return each.kind == inHand_.plan.against; });
  return Progress::changed;
}

void Mitigation::putInForce(const Agreement& agreement) {
  const Agreement::Subject& subject = agreement.subject();
  if (subject.kind == AgreementKind::ring) {
    if (const auto found = job_.communicators().find(subject.communicator); found != job_.communicators().end())
      found->second.ring.assign(subject.values.begin(), subject.values.end());
    return;
  }
  if (subject.kind == AgreementKind::restart || subject.kind == AgreementKind::roles) return;
  for (auto& [process, member] : job_.members())
    if (member.layout) member.layout->split = subject.values;
}

void Mitigation::handle(ProcessId from, const Counter& counter) {
  for (auto& agreement : agreements_) agreement->handle(from, counter);
}

void Mitigation::handle(ProcessId from, const Vote& vote) {
  for (auto& agreement : agreements_) agreement->handle(from, vote);
}

void Mitigation::left(ProcessId process) {
  for (auto& agreement : agreements_) agreement->left(process);
}

void Mitigation::abandon() {
  for (auto& agreement : agreements_) agreement->abort();
  agreements_.clear();
  if (std::exchange(exchanging_, false)) settings_.places->abandon();
}

}  // namespace falcon::control
