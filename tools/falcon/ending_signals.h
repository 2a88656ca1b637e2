// The signals by which somebody asks a subcommand to end, where it waits for them itself.
#pragma once

#include <signal.h>

namespace falcon::tools {

/// SIGINT, SIGTERM and SIGHUP.
inline sigset_t endingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

/// Blocks them in this thread and those that it starts from now on.
inline sigset_t blockEndingSignals() {
  const sigset_t signals = endingSignals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

}  // namespace falcon::tools
