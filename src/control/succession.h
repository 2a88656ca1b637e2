// What a new controller does about the agreements that the one before left undecided.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "control/decision_book.h"
#include "control/outbox.h"

namespace falcon::control {

/// A controller that dies between a proposal and its decision leaves members that wait for it, and it may have told
/// some of them and not others. So every member tells its new controller what it has heard (Recall), and this decides
/// for all, the same for all: what anybody has heard, or else, when all who took part and are still there have said
/// that they have heard nothing, that nothing changes. Nobody used the new plan then, as members hold before it takes
/// effect. A part of the controller, as a state machine.
class Succession {
 public:
  using Processes = std::function<std::vector<ProcessId>()>;

  /// Of one who is there and says nothing (a stopped process, on which the job waits in any case) that long at most.
  static constexpr Nanoseconds patience = 60s;

  /// `present`: who is on the bus now. `own`: what this process has heard and decided; null: nothing.
  Succession(const Clock& clock, Outbox& outbox, Processes present, const DecisionBook* own)
      : clock_(clock), outbox_(outbox), present_(std::move(present)), own_(own) {}

  void handle(ProcessId from, const Recall& recall);
  void left(ProcessId process) { heard_.erase(process); }
  void tick();

 private:
  struct Open {
    Undecided what;
    std::set<ProcessId> waiting;  ///< who has accepted it, and said so
    Nanoseconds since{0};
  };
  enum class Word { commit, abort, none };

  std::optional<bool> decisionOn(std::uint64_t agreement) const;
  Word wordOn(const Open& open, const std::set<ProcessId>& present) const;
  void decide(const Open& open, bool commit);

  const Clock& clock_;
  Outbox& outbox_;
  const Processes present_;
  const DecisionBook* const own_;
  std::map<std::uint64_t, Open> open_;     ///< by agreement
  std::map<std::uint64_t, bool> decided_;  ///< as far as members have heard
  std::set<ProcessId> heard_;              ///< whose newest word has come
  bool lossSaid_ = false;                  ///< that a controller has died over a plan
  bool contradictionSaid_ = false;
};

}  // namespace falcon::control
