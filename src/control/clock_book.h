// The clocks of all members beside the controller's.
#pragma once

#include <map>
#include <string>

#include "base/clock.h"
#include "control/messages.h"
#include "control/outbox.h"
#include "instrument/clock_alignment.h"

namespace falcon::control {

/// Asks members of other machines for their time, often at first and then every few seconds; processes of one clock
/// domain need no asking. Used by one thread.
class ClockBook {
 public:
  /// @param domain  of the controller's own clock; members that say the same read the same clock
  ClockBook(std::string domain, const Clock& clock, Outbox& outbox)
      : domain_(std::move(domain)), clock_(clock), outbox_(outbox) {}

  void handle(ProcessId from, const Introduce& introduce) {
    if (introduce.clockDomain != domain_) others_.try_emplace(from);
  }
  void handle(ProcessId from, const ClockAnswer& answer) {
    const auto other = others_.find(from);
    if (other == others_.end()) return;
    other->second.add(
        {Nanoseconds(answer.asked), Nanoseconds(answer.received), Nanoseconds(answer.answered), clock_.now()});
  }
  void left(ProcessId process) { others_.erase(process); }
  void tick() {
    if (others_.empty() || clock_.now() < next_) return;
    next_ = clock_.now() + (++asked_ < quickQuestions ? 200ms : 5s);
    for (const auto& [process, alignment] : others_) outbox_.to(process, AskClock{clock_.now().count()});
  }

  /// A moment of that process's clock on the controller's, and how far off that may be.
  Nanoseconds toOurs(ProcessId process, Nanoseconds theirs) const {
    const auto other = others_.find(process);
    return other == others_.end() ? theirs : other->second.toOurs(theirs);
  }
  Nanoseconds errorBound(ProcessId process) const {
    const auto other = others_.find(process);
    return other == others_.end() ? 0ns : other->second.errorBound(clock_.now());
  }

 private:
  static constexpr int quickQuestions = 10;

  const std::string domain_;
  const Clock& clock_;
  Outbox& outbox_;
  std::map<ProcessId, instrument::ClockAlignment> others_;
  Nanoseconds next_{0};
  int asked_ = 0;
};

}  // namespace falcon::control
