#include "control/member.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "transport/local_ports.h"
#include "validate/wave.h"

namespace falcon::control {
namespace {

// Testing all of a wave takes this long at most, and a probe runs beside the training.
constexpr Nanoseconds waveLimit = 4s;
constexpr Nanoseconds probeLimit = 1500ms;
constexpr Nanoseconds settleAfterOverrun = 2s;
// A controller that hands over in order decides what it has proposed; its word comes by way of the new one.
constexpr Nanoseconds decisionPatience = 10s;
constexpr std::size_t knownTraffics = 1024;  // communicators; a job that makes more without end is not followed

}  // namespace

Member::Member(MemberParts parts, Introduce identity) : parts_(parts), identity_(std::move(identity)) {
  newController();
}

void Member::newController() {
  parts_.trap.open();
  parts_.transfers.enable(false);
  if (!proposals_.empty()) undecidedUntil_ = parts_.clock.now() + decisionPatience;
  say(identity_);
  if (layout_) say(*layout_);
  for (const CommunicatorFormed& communicator : formed_) say(communicator);
  for (const auto& [id, traffic] : traffic_) say(traffic);
}

void Member::giveUpUndecided() {
  if (undecidedUntil_ == 0ns || parts_.clock.now() < undecidedUntil_) return;
  undecidedUntil_ = 0ns;
  parts_.plans.fail(Error::remote("the controller of this job is gone while a plan was being agreed"));
}

void Member::formed(const CommunicatorFormed& communicator) {
  formed_.push_back(communicator);
  say(communicator);
}

void Member::gone(CommunicatorId id) {
  std::erase_if(formed_, [&](const CommunicatorFormed& each) { return each.id == id; });
  traffic_.erase(id);
  say(CommunicatorGone{id});
}

void Member::layoutKnown(const LayoutKnown& layout) {
  layout_ = layout;
  say(layout);
}

void Member::tick() {
  if (off_) return;
  giveUpUndecided();
  readLog();
  if (trapId_ == 0) return;
  const bool held =
      parts_.trap.holdsAll(Nanoseconds(static_cast<std::int64_t>(std::max(1.0, 3 * iterationSeconds_) * 1e9)));
  if (held && !trapReported_) {
    trapReported_ = true;
    say(TrapState{trapId_, true});
  }
  if (!parts_.trap.closed()) {  // it opened itself: nobody came back
    trapId_ = 0;
    disturbed();
  }
}

void Member::readLog() {
  records_.clear();
  const Nanoseconds now = parts_.clock.now();
  const std::uint64_t lost = parts_.log.readFrom(nextRecord_, records_, budget_.allowed(now));
  budget_.spent(records_.size());
  if (lost > 0) overrun(lost, now);
  // A plan of ours changes the calls: the period is found anew without a word.
  if (const int current = parts_.plans.currentMicroBatches(); current != lastMicroBatches_) {
    if (lastMicroBatches_ != 0) {
      finder_.rebase();
      disturbed();
    }
    lastMicroBatches_ = current;
  }
  for (const CallRecord& record : records_) {
    noteTraffic(record);
    for (const instrument::IterationSample& iteration : finder_.add(record)) report(iteration);
  }
  if (pending_.samples.empty()) return;
  say(pending_);
  pending_.samples.clear();
}

// The application calls faster than the monitor may read.
void Member::overrun(std::uint64_t lost, Nanoseconds now) {
  finder_.overrun(lost);
  bundle_.reset();
  notJudgedUntil_ = now + settleAfterOverrun;
  if (overrunTold_) return;
  overrunTold_ = true;
  log::info("calls come faster than Falcon looks at them ({} missed now); iterations are not judged meanwhile", lost);
}

void Member::noteTraffic(const CallRecord& record) {
  if (record.operation == Operation::receive) return;  // its sender says it
  if (traffic_.size() >= knownTraffics && !traffic_.contains(record.communicator)) return;
  Traffic& traffic = traffic_[record.communicator];
  traffic.id = record.communicator;
  if (record.operation != Operation::send) {
    if (std::exchange(traffic.collectives, true)) return;
  } else {
    std::vector<Rank>& peers = traffic.sendsTo;
    if (std::find(peers.begin(), peers.end(), record.peer) != peers.end()) return;
    peers.push_back(record.peer);
  }
  say(traffic);
}

void Member::report(const instrument::IterationSample& iteration) {
  Sample sample;
  sample.index = static_cast<std::int64_t>(iteration.index);
  sample.seconds = falcon::seconds(iteration.duration);
  sample.outside = falcon::seconds(iteration.outside);
  sample.microBatches = parts_.plans.currentMicroBatches();
  sample.provisional = iteration.provisional;
  sample.disturbed = iteration.start < notJudgedUntil_ ||
                     (iteration.start < disturbedUntil_ && iteration.start + iteration.duration > disturbedFrom_);
  for (const auto& time : iteration.communicators)
    sample.communicators.push_back({time.id, falcon::seconds(time.inLibrary), static_cast<std::uint32_t>(time.calls)});
  iterationSeconds_ = sample.seconds;
  instrument::CallLogHeader& header = parts_.log.header();
  header.iterations.store(sample.index + 1, std::memory_order_relaxed);
  header.iterationNanoseconds.store(iteration.duration.count(), std::memory_order_relaxed);
  if (auto bundled = bundle_.add(sample)) pending_.samples.push_back(std::move(*bundled));
}

void Member::handle(const Message& message) {
  if (off_) return;
  std::visit(
      [this](const auto& each) {
        if constexpr (requires { this->order(each); }) this->order(each);
      },
      message);
}

void Member::order(const SetProfiling& order) {
  parts_.transfers.enable(order.on);
  TransferProfile profile = parts_.transfers.take();
  if (!order.on) say(profile);
}

void Member::order(const CloseTrap& order) {
  trapId_ = order.trap;
  trapReported_ = false;
  disturbedFrom_ = parts_.clock.now();
  disturbedUntil_ = Nanoseconds::max();
  parts_.trap.close(Nanoseconds(static_cast<std::int64_t>(order.limitSeconds * 1e9)));
  transport::ringOwnDoorbell();  // who sleeps in a wait loop looks at the trap now
}

void Member::order(const OpenTrap& order) {
  if (order.trap != trapId_) return;
  parts_.trap.open();
  trapId_ = 0;
  disturbed();
}

void Member::order(const RunCompute& order) {
  ComputeResult result;
  result.trap = order.trap;
  const auto score = parts_.benchmark.run(Nanoseconds(static_cast<std::int64_t>(order.spanSeconds * 1e9)));
  if (score) {
    result.gigaflopsPerSecond = score->gigaflopsPerSecond;
    if (score->stat.throttled) result.throttledSeconds = falcon::seconds(*score->stat.throttled);
    if (score->stat.runQueueWait) result.runQueueSeconds = falcon::seconds(*score->stat.runQueueWait);
  } else {
    result.problem = score.error().message();
  }
  say(result);
}

void Member::order(const RunWave& order) {
  LinkResults results{order.wave, {}};
  const auto wave = validate::decodeWave(order.plan);
  if (!wave) {
    log::warn("a wave of link tests cannot be read: {}", wave.error().message());
    say(results);
    return;
  }
  // Under the table's lock: no communicator goes away while its ports are in use.
  parts_.communicators.withAll([&](std::vector<KnownCommunicator>& known) {
    std::vector<validate::LocalCommunicator> local;
    for (KnownCommunicator& each : known)
      if (each.host) local.push_back({each.engine->id(), each.engine->rank(), &each.host->ports()});
    const auto waiter = transport::makeWaiter();
    const Nanoseconds limit = order.probe ? probeLimit : waveLimit;
    results.measurements = validate::encode(
        validate::runWave(*wave, local, validate::settingsOf(wave->lane), *waiter, parts_.clock, limit));
  });
  say(results);
}

void Member::order(const AskCounter& order) {
  Counter counter{order.agreement, 0};
  if (order.kind == AgreementKind::microBatches) {
    counter.next = parts_.plans.nextIteration();
  } else {
    parts_.communicators.with(order.communicator, [&](KnownCommunicator& known) {
      counter.next = std::max(counter.next, known.engine->nextCollective());
    });
  }
  say(counter);
}

void Member::order(const Propose& order) {
  bool yes = true;
  if (yes && order.kind == AgreementKind::microBatches) {
    yes = parts_.plans.propose(order.agreement, order.from, {order.values.begin(), order.values.end()});
  } else if (yes) {
    bool any = false;
    parts_.communicators.with(order.communicator, [&](KnownCommunicator& known) {
      any = true;
      if (!known.host)
        yes = false;
      else
        yes = yes && static_cast<bool>(known.host->proposeRing(order.from, {order.values.begin(), order.values.end()}));
    });
    yes = yes && any;
    if (!yes) withdraw(order);
  }
  if (yes) proposals_[order.agreement] = order;
  say(Vote{order.agreement, yes});
}

// Several ranks of one process vote together: what some had accepted is taken back.
void Member::withdraw(const Propose& proposal) {
  parts_.communicators.with(proposal.communicator, [&](KnownCommunicator& known) {
    if (known.host) known.host->decideRing(proposal.from, false);
  });
}

void Member::order(const Decide& order) {
  const auto proposal = proposals_.find(order.agreement);
  if (proposal == proposals_.end()) return;
  const Propose& decided = proposal->second;
  if (decided.kind == AgreementKind::microBatches) {
    parts_.plans.decide(order.agreement, order.commit);
  } else {
    parts_.communicators.with(decided.communicator, [&](KnownCommunicator& known) {
      if (known.host) known.host->decideRing(decided.from, order.commit);
    });
  }
  if (order.commit) {
    disturbed();
    keep(decided);
  }
  proposals_.erase(proposal);
  if (proposals_.empty()) undecidedUntil_ = 0ns;
}

// What a later controller must know to be in force.
void Member::keep(const Propose& decided) {
  if (decided.kind == AgreementKind::microBatches) {
    if (layout_) layout_->split = decided.values;
    return;
  }
  for (CommunicatorFormed& communicator : formed_)
    if (communicator.id == decided.communicator) communicator.ring.assign(decided.values.begin(), decided.values.end());
}

void Member::order(const ShowState& order) {
  instrument::CallLogHeader& header = parts_.log.header();
  header.state.store(order.state, std::memory_order_relaxed);
  header.failslowActive.store(order.failslows, std::memory_order_relaxed);
}

void Member::order(const SwitchOff&) {
  off_ = true;
  parts_.trap.open();
  parts_.transfers.enable(false);
  parts_.log.header().state.store(static_cast<std::uint32_t>(instrument::JobState::off), std::memory_order_relaxed);
}

}  // namespace falcon::control
