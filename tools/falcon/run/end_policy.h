// When ranks are asked to end, and when they are made to: decided from what happened and the time, without side
// effects.
#pragma once

#include <optional>

#include "base/clock.h"

namespace falcon::tools {

class EndPolicy {
 public:
  enum class Action { none, terminate, kill };

  /// Survivors of a dead rank get this long to notice and report it themselves.
  static constexpr Nanoseconds noticeTime = 6s;
  /// From SIGTERM to SIGKILL.
  static constexpr Nanoseconds graceTime = 3s;
  /// After a signal from outside, ranks may still be saving their state when the first of them is gone.
  static constexpr Nanoseconds askedGraceTime = 30s;

  void rankFailed(Nanoseconds now);
  /// A signal was passed on to the ranks.
  void signalPassedOn(int signal, Nanoseconds now);

  /// What is to be done to the ranks still running; each action is given once.
  Action due(Nanoseconds now);
  /// When due() should be asked again; nothing: only after something happened.
  std::optional<Nanoseconds> next() const { return deadline_; }

 private:
  Action planned_ = Action::none;
  std::optional<Nanoseconds> deadline_;
  bool asked_ = false;
  bool failed_ = false;
  bool killed_ = false;
  int lastSignal_ = 0;
};

}  // namespace falcon::tools
