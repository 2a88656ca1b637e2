// Two-phase agreement: "from collective N on, this ring order" or "from iteration N on, this split".
#pragma once

#include <map>
#include <optional>
#include <set>

#include "base/clock.h"
#include "control/outbox.h"

namespace falcon::control {

/// How far beyond the members' counters a change takes effect that is counted in iterations: they move on while the
/// proposal travels.
inline constexpr std::uint64_t iterationMargin = 1;
/// The least time that members are given, however short their iterations.
inline constexpr Nanoseconds leastAgreementLimit = 5s;

/// One agreement among `members`, as a state machine of the controller: ask for everyone's counter, propose a number
/// safely beyond all of them, commit when all said yes in time, else abort. A timeout means no change anywhere.
class Agreement {
 public:
  enum class State { asking, proposing, committed, aborted };

  struct Subject {
    AgreementKind kind = AgreementKind::ring;
    CommunicatorId communicator = 0;  ///< kind ring
    std::vector<std::int32_t> values;
  };

  /// `margin`: how far beyond the largest counter it takes effect: members move on while the proposal travels.
  Agreement(std::uint64_t id, Subject subject, std::set<ProcessId> members, std::uint64_t margin, const Clock& clock,
            Nanoseconds limit, Outbox& outbox);

  void handle(ProcessId from, const Counter& counter);
  void handle(ProcessId from, const Vote& vote);
  void left(ProcessId process);
  void tick();
  /// No change anywhere, whatever the members say.
  void abort() {
    if (!finished()) decide(false);
  }

  std::uint64_t id() const { return id_; }
  State state() const { return state_; }
  bool finished() const { return state_ == State::committed || state_ == State::aborted; }
  std::uint64_t from() const { return from_; }
  const Subject& subject() const { return subject_; }

 private:
  void sendAll(const Message& message);
  void decide(bool commit);

  const std::uint64_t id_;
  const Subject subject_;
  const std::set<ProcessId> members_;
  const std::uint64_t margin_;
  const Clock& clock_;
  const Nanoseconds deadline_;
  Outbox& outbox_;
  State state_ = State::asking;
  std::uint64_t from_ = 0;
  std::map<ProcessId, std::uint64_t> counters_;
  std::set<ProcessId> yes_;
};

}  // namespace falcon::control
