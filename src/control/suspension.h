// A suspension that somebody asked for: everybody held until it is lifted, by request, by its limit or by a death.
#pragma once

#include <string>

#include "base/clock.h"
#include "control/closing.h"
#include "control/job_view.h"
#include "control/outbox.h"
#include "control/request_id.h"

namespace falcon::control {

struct SuspendRequest {
  RequestId id;
  double limitSeconds = 10;
  std::uint32_t attempt = 0;

  SuspendAnswer answered(SuspendOutcome outcome, const std::string& text) const {
    return {id.number, outcome, text, attempt};
  }
};

/// A state machine of the controller, like a validation. Never blocks; whatever ends it opens the trap, and who asked
/// is answered once.
class Suspension {
 public:
  enum class State { closing, held, resumed, timedOut, notAllCame, rankDied, givenUp };

  /// `entryLimit`: within which everybody must be held.
  Suspension(std::uint64_t trap, const SuspendRequest& request, Nanoseconds entryLimit, const JobView& job,
             const Clock& clock, Outbox& outbox);

  /// Those of the closing; others are ignored.
  void handle(ProcessId from, const Message& message);
  /// Who asked has asked again, and waits for an answer to that now.
  void askedAgain(std::uint32_t attempt);
  /// `died`: it did not end in order.
  void left(ProcessId process, bool died);
  void tick();
  void resume() { finish(State::resumed, ""); }
  void giveUp(const std::string& why) { finish(State::givenUp, why); }

  State state() const { return state_; }
  bool finished() const { return state_ > State::held; }
  const SuspendRequest& request() const { return request_; }
  double closingSeconds() const { return closingSeconds_; }  ///< until all were held
  double seconds() const { return seconds_; }                ///< from the order to close to the order to open
  const std::string& text() const { return text_; }          ///< how it ended, a sentence; "" after resume()

 private:
  void allAreHeld();
  void answer(SuspendOutcome outcome);
  void finish(State state, const std::string& text);

  const std::uint64_t trap_;
  SuspendRequest request_;
  const JobView& job_;
  const Clock& clock_;
  Outbox& outbox_;
  const Nanoseconds started_;
  const Nanoseconds deadline_, entryDeadline_;
  State state_ = State::closing;
  Closing closing_;
  double closingSeconds_ = 0;
  double seconds_ = 0;
  std::string text_;
};

}  // namespace falcon::control
