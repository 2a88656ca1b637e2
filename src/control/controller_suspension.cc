// The controller's part in ncclFalconSuspend/Resume and `falcon suspend`: one suspension at a time, never while another
// trap is closed.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "control/controller.h"

namespace falcon::control {

void Controller::onSuspend(const SuspendRequest& asked) {
  SuspendRequest request = asked;
  const double most = seconds(longestTrap);
  request.limitSeconds = std::isfinite(asked.limitSeconds) ? std::clamp(asked.limitSeconds, 0.001, most) : most;
  noticeItsEnd();
  if (suspension_ && suspension_->request().id == asked.id) return suspension_->askedAgain(asked.attempt);
  const bool again = suspendNext_ && suspendNext_->id == asked.id;
  if (!again && (suspension_ || suspendNext_))
    return outbox_.to(asked.id.from, asked.answered(SuspendOutcome::already, "the job is suspended already"));
  suspendNext_ = request;
  startSuspension();
}

void Controller::onResume(ProcessId from, std::uint64_t request) {
  noticeItsEnd();
  SuspendAnswer answer{request, SuspendOutcome::done, ""};
  if (suspension_) {
    suspension_->resume();
    endSuspension();
  } else if (const auto next = std::exchange(suspendNext_, std::nullopt)) {
    outbox_.to(next->id.from, next->answered(SuspendOutcome::givenUp, "the job was resumed before it was held"));
  } else {
    answer = {request, SuspendOutcome::notSuspended,
              "the job is not suspended; a suspension ends by itself at its limit"};
  }
  outbox_.to(from, answer);
}

// Its limit is over on all ranks when it is over here, before the next tick too.
void Controller::noticeItsEnd() {
  if (!suspension_) return;
  suspension_->tick();
  if (suspension_->finished()) endSuspension();
}

// A validation is brief, and has its trap closed: what was asked for waits for its end.
void Controller::startSuspension() {
  if (!suspendNext_ || phase_ == Phase::validating) return;
  const SuspendRequest request = *std::exchange(suspendNext_, std::nullopt);
  // What is being measured would measure the suspension.
  if (phase_ == Phase::profiling || phase_ == Phase::collecting) {
    if (phase_ == Phase::profiling) outbox_.toAll(SetProfiling{false});
    phase_ = Phase::tracking;
    --attempts_;
  }
  suspendedSaid_ = false;
  suspension_ = std::make_unique<Suspension>(nextId_++, request, settings_.trapEntry, job_, clock_, outbox_);
}

/// False while the job is suspended, or about to be: nothing else happens then.
bool Controller::tickSuspension() {
  startSuspension();
  if (!suspension_) return true;
  suspension_->tick();
  if (suspension_->state() == Suspension::State::held) saySuspended();
  if (!suspension_->finished()) return false;
  endSuspension();
  return true;
}

void Controller::saySuspended() {
  if (std::exchange(suspendedSaid_, true)) return;
  emit({.kind = EventKind::suspended,
        .durationSeconds = suspension_->closingSeconds(),
        .text = fmt::format("the job is suspended, for {:.1f} s at most ({:.3f} s until all ranks were held)",
                            suspension_->request().limitSeconds, suspension_->closingSeconds())});
}

void Controller::inherit(bool asked, Nanoseconds held) {
  emit({.kind = asked ? EventKind::resumed : EventKind::trapOpened,
        .durationSeconds = seconds(held),
        .text = fmt::format("the controller died while the job was held, for {:.2f} s: every rank has let itself go",
                            seconds(held))});
}

void Controller::endSuspension() {
  using State = Suspension::State;
  if (suspension_->closingSeconds() > 0) saySuspended();
  const State state = suspension_->state();
  const bool timedOut = state == State::timedOut || state == State::notAllCame;
  std::string text = fmt::format("the job goes on after {:.2f} s", suspension_->seconds());
  if (!suspension_->text().empty()) text += ": " + suspension_->text();
  emit({.kind = timedOut ? EventKind::trapTimedOut : EventKind::resumed,
        .durationSeconds = suspension_->seconds(),
        .text = text});
  phaseStarted_ += fromSeconds(suspension_->seconds());
  suspension_.reset();
  learnAnew();
}

// The baseline in the making has the time that the job was held in its timing: it is begun anew.
void Controller::learnAnew() {
  if (phase_ != Phase::learning || !periodKnown_) return;
  mark_ = learnFrom_ = job_.receivedNow();
  outbox_.toAll(SetProfiling{false});
  outbox_.toAll(profilingOrder());
}

void Controller::giveUpSuspension(const std::string& why) {
  if (const auto next = std::exchange(suspendNext_, std::nullopt))
    outbox_.to(next->id.from, next->answered(SuspendOutcome::givenUp, why));
  if (!suspension_) return;
  suspension_->giveUp(why);
  endSuspension();
}

}  // namespace falcon::control
