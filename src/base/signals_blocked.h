// The application's signals, kept away from what is ours.
#pragma once

#include <signal.h>

namespace falcon {

/// While it lives the calling thread gets no signal, and a thread that it starts never does: the application's handlers
/// run on the application's threads, from such a thread's first moment on.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace falcon
