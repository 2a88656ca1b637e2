#include "run/end_policy.h"

#include <csignal>

namespace falcon::tools {

void EndPolicy::rankFailed(Nanoseconds now) {
  if (failed_ || killed_) return;
  failed_ = true;
  planned_ = asked_ ? Action::kill : Action::terminate;
  deadline_ = now + (asked_ ? askedGraceTime : noticeTime);
}

void EndPolicy::signalPassedOn(int signal, Nanoseconds now) {
  const bool endsRanks = signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
  if (!endsRanks || killed_) return;
  const bool impatient = (signal == SIGINT || signal == SIGTERM) && lastSignal_ == signal;
  lastSignal_ = signal;
  asked_ = true;
  if (!impatient) return;
  planned_ = Action::kill;
  deadline_ = now;
}

EndPolicy::Action EndPolicy::due(Nanoseconds now) {
  if (!deadline_ || now < *deadline_) return Action::none;
  const Action action = planned_;
  if (action == Action::terminate) {
    planned_ = Action::kill;
    deadline_ = now + graceTime;
  } else {
    killed_ = true;
    deadline_.reset();
  }
  return action;
}

}  // namespace falcon::tools
