// SIGINT, SIGTERM and SIGHUP become an exception, so that whatever was started or made is ended and removed.
#pragma once

namespace falcon::demo {

/// This process was asked to end. Not a std::exception: nobody reports it as an error on the way.
struct Interrupted {
  int signal;
};

/// From now on those signals are only noted. One that is ignored already (nohup) stays so.
void noteInterruptions();
/// Throws Interrupted once a signal was noted. Long waits ask again and again.
void throwIfInterrupted();

}  // namespace falcon::demo
