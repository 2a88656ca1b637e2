// How every thread of the library is started.
#pragma once

#include <pthread.h>

#include <thread>
#include <utility>

#include "base/signals_blocked.h"

namespace falcon {

/// Runs `body()` on a thread of that name (15 characters at most, as long-lived as a literal), on which no signal
/// handler of the application ever runs. Throws std::system_error where no thread can be had.
template <class Body>
std::thread libraryThread(const char* name, Body&& body) {
  const SignalsBlocked forTheThread;
  return std::thread([name, body = std::forward<Body>(body)]() mutable {
    pthread_setname_np(pthread_self(), name);
    body();
  });
}

}  // namespace falcon
