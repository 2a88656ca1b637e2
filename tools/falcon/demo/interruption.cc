#include "demo/interruption.h"

#include <signal.h>

#include <initializer_list>

namespace falcon::demo {
namespace {

volatile sig_atomic_t noted = 0;

}  // namespace

void noteInterruptions() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = [](int number) { noted = number; };
    action.sa_flags = SA_RESTART;
    sigaction(signal, &action, nullptr);
  }
}

void throwIfInterrupted() {
  if (noted != 0) throw Interrupted{noted};
}

}  // namespace falcon::demo
