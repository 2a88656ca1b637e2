#include "control/closing.h"

#include <algorithm>

#include "base/format.h"
#include "control/drain_wire.h"

namespace falcon::control {
namespace {

bool takesPart(const std::set<DrainGate::Part>& parts, const CountKey& key) {
  if (key.from >= 0) return parts.contains({key.communicator, key.from}) || parts.contains({key.communicator, key.to});
  const auto first = parts.lower_bound({key.communicator, -1});
  return first != parts.end() && first->communicator == key.communicator;
}

bool hasVendorsCommunicators(const JobView& job) {
  return std::any_of(job.communicators().begin(), job.communicators().end(),
                     [](const auto& each) { return !each.second.hostEngine; });
}

}  // namespace

Closing::Closing(const CloseTrap& order, const JobView& job, Outbox& outbox)
    : order_(order), job_(job), outbox_(outbox), missing_(job.allProcesses()) {
  order_.drain = hasVendorsCommunicators(job);
  if (order_.drain) drain_.emplace(missing_);
  outbox_.toAll(order_);
}

bool Closing::concerns(const Message& message) {
  return std::holds_alternative<TrapState>(message) || std::holds_alternative<DrainState>(message);
}

void Closing::handle(ProcessId from, const Message& message) {
  if (const auto* state = std::get_if<TrapState>(&message)) takeState(from, *state);
  if (const auto* state = std::get_if<DrainState>(&message)) takeState(from, *state);
}

void Closing::takeState(ProcessId from, const TrapState& state) {
  // One that is frozen has not heard yet that all drain.
  if (state.trap == order_.trap && state.held && !drain_) missing_.erase(from);
}

void Closing::takeState(ProcessId from, const DrainState& state) {
  if (state.trap != order_.trap) return;
  if (!drain_) drain();
  if (!drain_->members().contains(from)) drain_->join(from);
  learnParts(from, state);
  drain_->handle(from, {state.version, state.below, fromWire(state.entered)});
  if (state.below)
    runningOn_.insert(from);
  else
    runningOn_.erase(from);
  if (state.working)
    working_.insert(from);
  else
    working_.erase(from);
  // What it said of an older version may have changed since.
  if (state.held && drain_->hasSettled(from))
    missing_.erase(from);
  else
    missing_.insert(from);
}

/// A communicator of the vendor's of which the controller had not heard yet.
void Closing::drain() {
  missing_ = job_.allProcesses();
  drain_.emplace(missing_);
  order_.drain = true;
  outbox_.toAll(order_);
}

void Closing::learnParts(ProcessId from, const DrainState& state) {
  std::set<DrainGate::Part>& known = parts_[from];
  bool grew = false;
  for (const DrainPart& part : state.parts) grew |= known.insert({part.communicator, part.rank}).second;
  if (!grew) return;
  untold_.insert(from);
  if (!drain_->targets().empty()) drain_->askAgain();
}

void Closing::left(ProcessId process) {
  missing_.erase(process);
  runningOn_.erase(process);
  working_.erase(process);
  parts_.erase(process);
  if (drain_) drain_->leave(process);
}

void Closing::tick() {
  if (!drain_ || drain_->version() == told_) return;
  for (const ProcessId member : drain_->members()) tell(member, untold_.contains(member));
  told_ = drain_->version();
  toldTargets_ = drain_->targets();
  untold_.clear();
}

void Closing::tell(ProcessId process, bool all) {
  DrainTargets message{order_.trap, drain_->version(), {}};
  const auto& parts = parts_[process];
  for (const auto& [key, count] : drain_->targets()) {
    const auto known = toldTargets_.find(key);
    const bool rose = known == toldTargets_.end() || known->second < count;
    if ((all || rose) && takesPart(parts, key)) message.targets.push_back({key.communicator, key.from, key.to, count});
  }
  outbox_.to(process, message);
}

std::string Closing::whatIsMissing() const {
  if (!runningOn_.empty())
    return fmt::format("{} had to make calls that others are waiting in, and did not", namesOf(runningOn_));
  std::set<ProcessId> outside = missing_;
  for (const ProcessId process : working_) outside.erase(process);
  if (outside.empty() && !working_.empty())
    return fmt::format("what {} had launched on the device did not come to its end", namesOf(working_));
  return namesOf(outside) + " did not come into the library";
}

std::string Closing::namesOf(const std::set<ProcessId>& processes) const {
  constexpr int most = 8;
  std::string names;
  int count = 0;
  for (const ProcessId process : processes) {
    if (count++ == most) return names + " and others";
    const auto member = job_.members().find(process);
    names += fmt::format("{}rank {}", names.empty() ? "" : ", ",
                         member == job_.members().end() ? -1 : member->second.identity.jobRank);
  }
  return names;
}

}  // namespace falcon::control
