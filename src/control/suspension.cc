#include "control/suspension.h"

#include <algorithm>

#include "base/format.h"

namespace falcon::control {
Suspension::Suspension(std::uint64_t trap, const SuspendRequest& request, Nanoseconds entryLimit, const JobView& job,
                       const Clock& clock, Outbox& outbox)
    : trap_(trap),
      request_(request),
      job_(job),
      clock_(clock),
      outbox_(outbox),
      started_(clock.now()),
      deadline_(started_ + fromSeconds(request.limitSeconds)),
      entryDeadline_(std::min(deadline_, started_ + entryLimit)),
      closing_({trap_, request.limitSeconds, true}, job, outbox) {}

void Suspension::handle(ProcessId from, const Message& message) {
  if (state_ != State::closing) return;
  closing_.handle(from, message);
  if (closing_.isDone()) allAreHeld();
}

void Suspension::askedAgain(std::uint32_t attempt) {
  request_.attempt = attempt;
  if (state_ == State::held) answer(SuspendOutcome::done);
}

void Suspension::left(ProcessId process, bool died) {
  if (finished()) return;
  if (died) return finish(State::rankDied, closing_.namesOf({process}) + " died while the job was suspended");
  closing_.left(process);
  if (state_ == State::closing && closing_.isDone()) allAreHeld();
}

void Suspension::tick() {
  const Nanoseconds now = clock_.now();
  if (state_ == State::closing && now > entryDeadline_)
    return finish(State::notAllCame,
                  fmt::format("{} within {:.1f} s", closing_.whatIsMissing(), falcon::seconds(now - started_)));
  if (state_ == State::closing) closing_.tick();
  if (state_ == State::held && now > deadline_) finish(State::timedOut, "nobody resumed the job in time");
}

void Suspension::allAreHeld() {
  state_ = State::held;
  closingSeconds_ = falcon::seconds(clock_.now() - started_);
  answer(SuspendOutcome::done);
}

void Suspension::answer(SuspendOutcome outcome) {
  outbox_.to(request_.id.from, request_.answered(outcome, text_));
}

void Suspension::finish(State state, const std::string& text) {
  if (finished()) return;
  const bool answered = state_ == State::held;
  state_ = state;
  text_ = text;
  seconds_ = falcon::seconds(clock_.now() - started_);
  outbox_.toAll(OpenTrap{trap_, state == State::rankDied});
  if (answered) return;
  if (text_.empty()) text_ = "the job was resumed before all of it was held";
  answer(state == State::notAllCame ? SuspendOutcome::notAllCame
         : state == State::rankDied ? SuspendOutcome::rankDied
                                    : SuspendOutcome::givenUp);
}

}  // namespace falcon::control
