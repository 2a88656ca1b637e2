// Where an exception must not go on: on a thread of the library's own, where it would end the job.
#pragma once

#include <exception>
#include <utility>

namespace falcon {

/// Runs `body`. False: it threw (no memory, mostly), and `say(problem)` was told why; what that throws in its turn is
/// dropped.
template <class Body, class Say>
bool contained(Body&& body, Say&& say) noexcept {
  const auto tell = [&](const char* problem) noexcept {
    try {
      say(problem);
    } catch (...) {  // no memory for the words either
    }
  };
  try {
    std::forward<Body>(body)();
    return true;
  } catch (const std::exception& problem) {
    tell(problem.what());
  } catch (...) {
    tell("an exception of an unknown kind");
  }
  return false;
}

}  // namespace falcon
