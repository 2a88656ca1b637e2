// The validation of one onset as a state machine of the controller: trap, compute tests, link passes, verdict, release.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/event.h"
#include "control/decisions.h"
#include "control/job_view.h"
#include "control/link_relief.h"
#include "control/outbox.h"

namespace falcon::control {

/// Never blocks; ends by its limit at the latest, and whatever ends it, opens the trap.
class Validation {
 public:
  struct Outcome {
    Verdict verdict;
    bool trapTimedOut = false;
    double trapSeconds = 0;              ///< from the order to close to the order to open
    double closingSeconds = 0;           ///< until all were held
    std::map<Link, LinkRate> linkRates;  ///< measured, by job ranks
    std::set<Link> lookSlow;             ///< of these: what they give now is not their healthy rate
    std::vector<Link> leftOut;           ///< job ranks: there was no time to test them
    std::string examination;             ///< all that was measured, in validate's encoding; "": it came to no end
  };

  virtual ~Validation() = default;
  virtual void handle(ProcessId from, const Message& message) = 0;
  /// `died`: it did not end in order.
  virtual void left(ProcessId process, bool died) = 0;
  virtual void tick() = 0;
  /// Opens the trap; there will be no verdict.
  virtual void abandon() = 0;
  virtual bool finished() const = 0;
  virtual const Outcome& outcome() const = 0;
};

struct ValidationInput {
  std::uint64_t id = 0;
  diagnose::Suspicion suspects;
  std::vector<Culprit> known;  ///< named before and not relieved: they do not end the search
  Nanoseconds limit{0};
  Nanoseconds entryLimit{30s};  ///< until everybody is held
  std::size_t window = 4;       ///< iterations since the onset that profiles are taken from
  /// Rates of links seen healthy in earlier validations, bytes per second, by job ranks.
  std::map<Link, double> knownLinkRates;
  /// Links that the validation before had no time for, by job ranks.
  std::set<Link> waiting;
  bool wantsExamination = false;
};
std::unique_ptr<Validation> startValidation(const ValidationInput& input, const JobView& job, const Clock& clock,
                                            Outbox& outbox);

}  // namespace falcon::control
