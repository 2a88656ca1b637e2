#include "control/member.h"

#include <algorithm>
#include <utility>

#include "base/cpu_cgroup.h"
#include "base/log.h"
#include "base/parameters.h"
#include "control/device_calls.h"
#include "control/succession.h"
#include "transport/local_ports.h"
#include "validate/memory_test.h"
#include "validate/package_power.h"
#include "validate/processor_stat.h"
#include "validate/wave.h"

namespace falcon::control {
namespace {

constexpr Nanoseconds quotaInterval = 500ms;

// Testing all of a wave takes this long at most, and a probe runs beside the training.
constexpr Nanoseconds waveLimit = 4s;
constexpr Nanoseconds probeLimit = 1500ms;
constexpr Nanoseconds settleAfterOverrun = 2s;
// The last resort: the new controller says within its own patience what holds.
constexpr Nanoseconds decisionPatience = Succession::patience + 30s;
// The controller waits for a profile for twice as long.
constexpr Nanoseconds devicePatience = 1s;
constexpr std::size_t knownTraffics = 1024;  // communicators; a job that makes more without end is not followed

}  // namespace

Member::Member(MemberParts parts, Introduce identity)
    : parts_(parts),
      identity_(std::move(identity)),
      finder_({.method = static_cast<instrument::PeriodMethod>(parameters::period.value())}),
      processors_(parts_.clock),
      ranges_(parts.ranges) {
  newController();
}

void Member::newController() {
  letGo();
  heldBy_ = 0;  // who died while it held the job was told of before: see left()
  stopProfiling();
  window_.start(0);
  for (const auto& [agreement, proposal] : proposals_) orphans_.insert(agreement);
  if (!orphans_.empty()) undecidedUntil_ = parts_.clock.now() + decisionPatience;
  say(identity_);
  if (layout_) say(*layout_);
  if (restart_) say(*restart_);
  if (memory_.said()) say(*memory_.said());
  for (const CommunicatorFormed& communicator : formed_) say(communicator);
  for (const auto& [id, traffic] : traffic_) say(traffic);
  recall();
}

// Also where there is nothing to tell: the new controller waits for the word of everybody who may have heard a
// decision.
void Member::recall() {
  Recall recall{{}, parts_.decisions.decisions()};
  for (const auto& [agreement, accepted] : proposals_)
    recall.undecided.push_back({agreement, accepted.proposal.kind, accepted.by, accepted.proposal.members});
  say(recall);
}

void Member::end() {
  letGo();
  if (!off_) say(Leaving{});
}

void Member::giveUpUndecided() {
  if (orphans_.empty() || parts_.clock.now() < undecidedUntil_) return;
  log::warn(
      "no controller has decided within {} s on a plan that the one before had proposed: this process goes on without "
      "it",
      seconds(decisionPatience));
  while (!orphans_.empty()) decide(*orphans_.begin(), false);
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

void Member::partKnown(const PartKnown& layout) {
  const auto split = layout_ ? layout_->split : std::vector<std::int32_t>();
  layout_ = layout;
  layout_->split = split;  // it belongs to the replicas, whoever they are
  say(*layout_);
}

void Member::restartKnown(const RestartKnown& restart) {
  restart_ = restart;
  say(restart);
}

void Member::reshaped(const Reshaped& outcome) {
  if (outcome.done) {
    finder_.rebase();
    disturbed();
  }
  say(outcome);
}

void Member::tick() {
  giveUpUndecided();
  if (off_) return;
  readQuota();
  sayMemory();
  processors_.tick();
  readLog();
  tellProfile();
  if (trapId_ != 0) tickTrap();
}

void Member::readQuota() {
  const Nanoseconds now = parts_.clock.now();
  if (quotaRead_ && now - *quotaRead_ < quotaInterval) return;
  quotaRead_ = now;
  const auto quota = quotaOfThisProcess();
  quotaCores_ = quota ? quota->cores : 0;
}

// Only an exchange of roles has to fit into it.
void Member::sayMemory() {
  if (!layout_ || layout_->role < 0) return;
  if (const auto news = memory_.look(parts_.clock.now())) say(*news);
}

void Member::readLog() {
  records_.clear();
  ranges_.read();
  work_.read();
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
  std::set<CommunicatorId> moreTraffic;
  for (const CallRecord& record : records_) {
    if (noteTraffic(record)) moreTraffic.insert(record.communicator);
    window_.add(record);
    for (const instrument::IterationSample& iteration : finder_.add(record)) report(iteration);
  }
  // Once for all of these calls: the list of who is sent to grows with the job.
  for (const CommunicatorId id : moreTraffic) say(traffic_.at(id));
  if (!finder_.following()) parts_.log.header().iterationNanoseconds.store(0, std::memory_order_relaxed);
  if (pending_.samples.empty()) return;
  say(pending_);
  pending_.samples.clear();
}

// The application calls faster than the monitor may read.
void Member::overrun(std::uint64_t lost, Nanoseconds now) {
  finder_.overrun(lost);
  window_.interrupt();
  bundle_.reset();
  notJudgedUntil_ = now + settleAfterOverrun;
  if (overrunTold_) return;
  overrunTold_ = true;
  log::info("calls come faster than Falcon looks at them ({} missed now); iterations are not judged meanwhile", lost);
}

/// Whether there is more to say of its communicator.
bool Member::noteTraffic(const CallRecord& record) {
  if (record.operation == Operation::receive) return false;  // its sender says it
  if (traffic_.size() >= knownTraffics && !traffic_.contains(record.communicator)) return false;
  Traffic& traffic = traffic_[record.communicator];
  traffic.id = record.communicator;
  if (record.operation != Operation::send) {
    if (std::exchange(traffic.collectives, true)) return false;
  } else {
    std::vector<Rank>& peers = traffic.sendsTo;
    if (std::find(peers.begin(), peers.end(), record.peer) != peers.end()) return false;
    peers.push_back(record.peer);
  }
  return true;
}

void Member::report(const instrument::IterationSample& iteration) {
  // A pattern that was given up before it was sure had no iterations: those were the turns of an inner loop.
  if (std::exchange(pattern_, iteration.pattern) != iteration.pattern) noIterations_ += std::exchange(unsure_, 0);
  unsure_ = iteration.provisional ? unsure_ + 1 : 0;
  Sample sample;
  sample.index = static_cast<std::int64_t>(iteration.index - noIterations_);
  sample.seconds = falcon::seconds(iteration.duration);
  // Calls of the vendor's end when they are launched: who waits for others waits outside of them, for the device.
  sample.outside = vendorsCommunicators().empty() ? falcon::seconds(iteration.outside) : Sample::unknownOutside;
  sample.microBatches = parts_.plans.currentMicroBatches();
  sample.provisional = iteration.provisional;
  sample.pattern = static_cast<std::uint32_t>(iteration.pattern);
  sample.calls = static_cast<std::uint32_t>(finder_.period());
  sample.quotaCores = quotaCores_;
  if (const auto use = processors_.between(iteration.start, iteration.start + iteration.duration)) {
    sample.processor = use->processSeconds;
    sample.busyCores = use->busyCores;
    sample.stolenCores = use->stolenCores;
  }
  sample.disturbed = iteration.start < notJudgedUntil_ ||
                     (iteration.start < disturbedUntil_ && iteration.start + iteration.duration > disturbedFrom_);
  sample.ranges = ranges_.take(iteration.start, iteration.start + iteration.duration);
  sample.work = work_.take(iteration.start, iteration.start + iteration.duration);
  if (sample.work == 0) sample.work = iteration.work;
  for (const auto& time : iteration.communicators)
    sample.communicators.push_back({time.id, falcon::seconds(time.inLibrary), static_cast<std::uint32_t>(time.calls)});
  iterationSeconds_ = sample.seconds;
  // Some equal calls in a row look like iterations of a microsecond for a while.
  iterationIsSure_ = !sample.provisional;
  if (iterationIsSure_) {
    instrument::CallLogHeader& header = parts_.log.header();
    header.iterations.store(sample.index + 1, std::memory_order_relaxed);
    header.iterationNanoseconds.store(iteration.duration.count(), std::memory_order_relaxed);
  }
  // What an evaluation or a checkpoint adds says nothing about the others' pace.
  if (iteration.extraCalls) return;
  if (auto bundled = bundle_.add(sample)) pending_.samples.push_back(std::move(*bundled));
}

// Of long iterations milliseconds tell little: half of what clocks of other machines may be off by
// (control/waiting.cc).
Nanoseconds Member::deviceTolerance() const {
  constexpr double ofAnIteration = 0.025;
  return std::max(gpu::DeviceTimes::usuallyUncertain, fromSeconds(ofAnIteration * iterationSeconds_));
}

std::set<CommunicatorId> Member::vendorsCommunicators() {
  std::set<CommunicatorId> vendors;
  parts_.communicators.withAll([&](std::vector<KnownCommunicator>& known) {
    for (const KnownCommunicator& each : known)
      if (each.membership->kind() == EngineKind::vendor) vendors.insert(each.membership->id());
  });
  return vendors;
}

void Member::handle(ProcessId from, const Message& message) {
  if (off_ && !std::holds_alternative<Decide>(message)) return;  // the application may wait for that one
  orderFrom_ = from;
  std::visit(
      [this](const auto& each) {
        if constexpr (requires { this->order(each); }) this->order(each);
      },
      message);
}

void Member::order(const SetProfiling& order) {
  parts_.transfers.enable(order.on);
  if (parts_.launched) parts_.launched->times().enable(order.on);
  if (profile_) profile_->waitsUntil = parts_.clock.now();
  tellProfile();
  TransferProfile transfers = parts_.transfers.take();
  if (order.on) return window_.start(order.mostCalls);
  profile_ = {std::move(transfers), window_.take(), parts_.clock.now() + devicePatience};
  tellProfile();
}

// The device may be far behind the calls that launched its work, and a slow one is: what it has not done has no times.
void Member::tellProfile() {
  if (!profile_) return;
  const auto vendors = vendorsCommunicators();
  if (parts_.launched && !vendors.empty()) {
    gpu::DeviceTimes& times = parts_.launched->times();
    if (parts_.clock.now() < profile_->waitsUntil && times.underWay() > 0) return;
    profile_->calls = asOnDevice(std::move(profile_->calls.calls), vendors, times.take(deviceTolerance()));
  }
  if (!profile_->calls.calls.empty()) say(profile_->calls);
  say(profile_->transfers);  // the last word: the controller waits for it
  profile_.reset();
}

void Member::order(const AskClock& order) {
  const Nanoseconds now = parts_.clock.now();
  say(ClockAnswer{order.asked, now.count(), now.count()});
}

void Member::order(const RunCompute& order) {
  // A moment beside the products, which stay in the cache. Not more of it than a job near its limit of memory can
  // spare.
  constexpr Nanoseconds memorySpan = 80ms;
  constexpr std::size_t memoryBytes = std::size_t{32} << 20;
  ComputeResult result;
  result.trap = order.trap;
  const auto powerBefore = validate::readPackagePower();
  const auto score = parts_.benchmark.run(fromSeconds(order.spanSeconds));
  if (score) {
    result.gigaflopsPerSecond = score->gigaflopsPerSecond;
    if (score->stat.throttled) result.throttledSeconds = falcon::seconds(*score->stat.throttled);
    if (score->stat.runQueueWait) result.runQueueSeconds = falcon::seconds(*score->stat.runQueueWait);
    if (score->stat.steal) result.stolenSeconds = falcon::seconds(*score->stat.steal);
    if (score->stat.thermalThrottles) result.thermalThrottles = static_cast<double>(*score->stat.thermalThrottles);
    result.processorSeconds = falcon::seconds(score->processor);
    result.wallSeconds = falcon::seconds(score->wall);
    const double power = validate::packagePowerShare(powerBefore, validate::readPackagePower(), score->wall);
    if (power >= 0) result.power = power;
    result.processors = static_cast<double>(validate::allowedProcessors().size());
  } else {
    result.problem = score.error().message();
  }
  if (const auto memory = validate::testMemory(parts_.clock, memorySpan, memoryBytes))
    result.memoryRate = memory->bytesPerSecond;
  testGpu(result);
  say(result);
}

// Where the vendor's engine is in use: after the processor, so that neither test waits for the other.
void Member::testGpu(ComputeResult& result) {
  constexpr Nanoseconds span = 400ms;
  std::optional<int> device;
  parts_.communicators.withAll([&](std::vector<KnownCommunicator>& known) {
    for (const KnownCommunicator& each : known)
      if (!device && each.membership->kind() == EngineKind::vendor && each.membership->device() >= 0)
        device = each.membership->device();
  });
  if (!device || !parts_.gpu) return;
  const auto sample = parts_.gpu->run(*device, span);
  if (sample)
    result.gpu = validate::encode(*sample);
  else
    log::notice("device {} could not be tested: {}", *device, sample.error().message());
}

void Member::order(const RunWave& order) {
  LinkResults results{order.wave, {}};
  const auto wave = validate::decodeWave(order.plan);
  if (!wave) {
    log::warn("a wave of link tests cannot be read: {}", wave.error().message());
    say(results);
    return;
  }
  // The ports are held, and the table is not: a communicator comes or goes at once, however long the wave takes.
  std::vector<std::shared_ptr<transport::Ports>> held;
  std::vector<validate::LocalCommunicator> local;
  parts_.communicators.withAll([&](std::vector<KnownCommunicator>& known) {
    for (KnownCommunicator& each : known) {
      if (!each.host) continue;
      held.push_back(each.host->ports());
      local.push_back({each.membership->id(), each.membership->rank(), held.back().get()});
    }
  });
  const auto waiter = transport::makeWaiter();
  const Nanoseconds limit = order.probe ? probeLimit : waveLimit;
  const auto stop = [this] { return parts_.stopping && parts_.stopping->load(std::memory_order_relaxed); };
  results.measurements = validate::encode(
      validate::runWave(*wave, local, validate::settingsOf(*wave), *waiter, parts_.clock, limit, stop));
  say(results);
}

void Member::order(const AskCounter& order) {
  Counter counter{order.agreement, 0};
  if (order.kind == AgreementKind::microBatches) {
    counter.next = parts_.plans.nextIteration();
  } else if (order.kind == AgreementKind::restart) {
    if (parts_.restarts) counter.next = parts_.restarts->nextIteration();
  } else if (order.kind == AgreementKind::roles) {
    if (parts_.roles) counter.next = parts_.roles->nextIteration();
  } else {
    parts_.communicators.with(order.communicator, [&](KnownCommunicator& known) {
      counter.next = std::max(counter.next, known.membership->nextCollective());
    });
  }
  say(counter);
}

void Member::order(const Propose& order) {
  bool yes = true;
  if (yes && order.kind == AgreementKind::microBatches) {
    yes = parts_.plans.propose(order.agreement, order.from, {order.values.begin(), order.values.end()});
  } else if (order.kind == AgreementKind::restart) {
    yes = parts_.restarts &&
          parts_.restarts->propose(order.agreement, order.from, {order.values.begin(), order.values.end()});
  } else if (order.kind == AgreementKind::roles) {
    yes = parts_.roles && parts_.roles->propose(order.agreement, order.from, order.values);
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
  if (yes) proposals_[order.agreement] = {order, orderFrom_};
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
  if (proposal != proposals_.end() && orderFrom_ != proposal->second.by && orderFrom_ != parts_.bus.controller())
    return;
  parts_.decisions.note(order);
  if (proposal != proposals_.end()) decide(order.agreement, order.commit);
}

/// What has been accepted here, and waits.
void Member::decide(std::uint64_t agreement, bool commit) {
  const Propose decided = std::move(proposals_.extract(agreement).mapped().proposal);
  const bool inherited = orphans_.erase(agreement) > 0;
  if (decided.kind == AgreementKind::microBatches) {
    parts_.plans.decide(agreement, commit);
  } else if (decided.kind == AgreementKind::restart) {
    parts_.restarts->decide(agreement, commit);
  } else if (decided.kind == AgreementKind::roles) {
    parts_.roles->decide(agreement, commit);
  } else {
    parts_.communicators.with(decided.communicator, [&](KnownCommunicator& known) {
      if (known.host) known.host->decideRing(decided.from, commit);
    });
  }
  if (!commit) return;
  disturbed();
  keep(decided);
  if (!inherited) return;
  // The new controller was told what held before.
  if (decided.kind == AgreementKind::microBatches && layout_) say(*layout_);
  for (const CommunicatorFormed& communicator : formed_)
    if (decided.kind == AgreementKind::ring && communicator.id == decided.communicator) say(communicator);
}

// What a later controller must know to be in force.
void Member::keep(const Propose& decided) {
  if (decided.kind == AgreementKind::microBatches) {
    if (layout_) layout_->split = decided.values;
    return;
  }
  if (decided.kind == AgreementKind::restart) return;  // it ends soon, and nobody plans any more
  if (decided.kind == AgreementKind::roles) return;    // the layout says them once they are taken
  for (CommunicatorFormed& communicator : formed_)
    if (communicator.id == decided.communicator) communicator.ring.assign(decided.values.begin(), decided.values.end());
}

void Member::order(const ShowState& order) {
  instrument::CallLogHeader& header = parts_.log.header();
  header.state.store(order.state, std::memory_order_relaxed);
  header.failslowActive.store(order.failslows, std::memory_order_relaxed);
}

void Member::stopProfiling() {
  parts_.transfers.enable(false);
  if (parts_.launched) parts_.launched->times().enable(false);
  profile_.reset();
}

void Member::order(const SwitchOff&) {
  off_ = true;
  heldBy_ = 0;
  letGo();
  stopProfiling();
  parts_.log.header().state.store(static_cast<std::uint32_t>(instrument::JobState::off), std::memory_order_relaxed);
}

}  // namespace falcon::control
