// How long a job may be held for its tests, and whether that leaves time for links that can wait. Pure.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace falcon::validate {

/// The whole is planned to stay within `goal`, from the moment that all are held: the compute tests, the links that
/// the group's collectives use and of the others the slowest, and that what looks slow is measured twice more. None of
/// these is left out, however long they take; further links are, and wait for another look. The other direction of a
/// link that is named already is measured until `most`.
class TestTime {
 public:
  static constexpr Nanoseconds goal = 2500ms, most = 3s;
  static constexpr std::size_t confirmations = 2;

  /// A wave has come to its end.
  void took(Nanoseconds wave) { longest_ = std::max(longest_, wave); }
  /// One more wave can run.
  /// @param elapsed    since all are held
  /// @param doubtful   passes of what looks slow by now
  bool allowsMore(Nanoseconds elapsed, std::size_t doubtful) const {
    const auto toCome = 1 + confirmations * std::max<std::size_t>(doubtful, 1);
    return elapsed + static_cast<Nanoseconds::rep>(toCome) * longest_ <= goal;
  }
  /// One more wave would end before `most`.
  /// @param elapsed  since all are held
  bool allowsOther(Nanoseconds elapsed) const { return elapsed + longest_ <= most; }

 private:
  Nanoseconds longest_{0};
};

}  // namespace falcon::validate
