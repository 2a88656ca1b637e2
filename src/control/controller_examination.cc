// The controller's part in `falcon doctor --attach`: all tests of a validation for everybody. Nobody is named for it:
// the figures go to who asked.
#include <utility>

#include "base/format.h"
#include "control/controller.h"
#include "control/tested_groups.h"

namespace falcon::control {

void Controller::onExamine(const RequestId& asked) {
  if (examining_ == asked || examineNext_ == asked) return;
  if (examining_ || examineNext_) return refuseExamination(asked, "the job is being examined already");
  if (suspension_ || suspendNext_) return refuseExamination(asked, "the job is suspended");
  examineNext_ = asked;
  startExamination();
}

// What is being measured, or agreed on, comes first; it does not take long.
void Controller::startExamination() {
  const bool free = phase_ == Phase::tracking || phase_ == Phase::learning;
  if (!examineNext_ || !free || suspension_ || mitigation_.agreeing()) return;
  examining_ = std::exchange(examineNext_, std::nullopt);
  ValidationInput input;
  input.id = nextId_;
  nextId_ += 1000;  // see validate()
  input.suspects = everybody(job_);
  input.limit = settings_.trapTimeout;
  input.entryLimit = settings_.trapEntry;
  input.window = window();
  input.knownLinkRates = linkRates_;
  input.wantsExamination = true;
  emit({.kind = EventKind::trapClosed, .text = "the job is held to be examined: " + input.suspects.reason});
  validation_ = startValidation(input, job_, clock_, outbox_);
  examinedIn_ = std::exchange(phase_, Phase::validating);
}

void Controller::endExamination() {
  const Validation::Outcome outcome = validation_->outcome();
  validation_.reset();
  phase_ = examinedIn_;
  phaseStarted_ += fromSeconds(outcome.trapSeconds);
  const bool failed = outcome.examination.empty();
  emit({.kind = outcome.trapTimedOut ? EventKind::trapTimedOut : EventKind::trapOpened,
        .durationSeconds = outcome.trapSeconds,
        .text = fmt::format("the job was held for {:.2f} s to be examined{}{}", outcome.trapSeconds,
                            failed ? ", in vain: " : "", failed ? outcome.verdict.evidence : "")});
  const RequestId asked = *std::exchange(examining_, std::nullopt);
  outbox_.to(asked.from, Examined{asked.number, failed ? outcome.verdict.evidence : "", outcome.examination});
  learnAnew();
}

void Controller::refuseExamination(const RequestId& asked, const std::string& why) {
  outbox_.to(asked.from, Examined{asked.number, why, ""});
}

void Controller::giveUpExamination(const std::string& why) {
  for (auto* request : {&examining_, &examineNext_})
    if (const auto asked = std::exchange(*request, std::nullopt)) refuseExamination(*asked, why);
}

}  // namespace falcon::control
