// The terminal while something is drawn on it again and again.
#pragma once

#include <signal.h>

#include <string>

#include "base/clock.h"

namespace falcon::top {

/// Takes the terminal's second screen, and gives the first one back at the end, as it was. While it lives, the signals
/// that end a program (and Ctrl-C) wait for pause().
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;

  /// Replaces what is shown; lines that do not fit are cut.
  void show(const std::string& text);
  /// False: a signal asks to end.
  bool pause(Nanoseconds duration);

 private:
  sigset_t ending_, before_;
};

}  // namespace falcon::top
