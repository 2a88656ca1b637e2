#include "control/agreement.h"

#include <algorithm>

namespace falcon::control {

Agreement::Agreement(std::uint64_t id, Subject subject, std::set<ProcessId> members, std::uint64_t margin,
                     const Clock& clock, Nanoseconds limit, Outbox& outbox)
    : id_(id),
      subject_(std::move(subject)),
      members_(std::move(members)),
      margin_(margin),
      clock_(clock),
      deadline_(clock.now() + limit),
      outbox_(outbox) {
  sendAll(AskCounter{id_, subject_.kind, subject_.communicator});
}

void Agreement::sendAll(const Message& message) {
  for (const ProcessId member : members_) outbox_.to(member, message);
}

void Agreement::handle(ProcessId from, const Counter& counter) {
  if (state_ != State::asking || counter.agreement != id_ || !members_.contains(from)) return;
  counters_[from] = counter.next;
  if (counters_.size() < members_.size()) return;
  for (const auto& [process, next] : counters_) from_ = std::max(from_, next);
  from_ += margin_;
  state_ = State::proposing;
  Propose proposal{id_, subject_.kind, subject_.communicator, from_, subject_.values, {}};
  // A split concerns everybody, and in a large job a list of all would be sent to all.
  if (subject_.kind == AgreementKind::ring) proposal.members.assign(members_.begin(), members_.end());
  sendAll(proposal);
}

void Agreement::handle(ProcessId from, const Vote& vote) {
  if (state_ != State::proposing || vote.agreement != id_ || !members_.contains(from)) return;
  if (!vote.yes) return decide(false);
  yes_.insert(from);
  if (yes_.size() == members_.size()) decide(true);
}

void Agreement::left(ProcessId process) {
  if (!finished() && members_.contains(process)) decide(false);
}

void Agreement::tick() {
  if (!finished() && clock_.now() > deadline_) decide(false);
}

void Agreement::decide(bool commit) {
  state_ = commit ? State::committed : State::aborted;
  sendAll(Decide{id_, commit});
}

}  // namespace falcon::control
