// Which suspicions were tested in vain, and are not tested again so soon. Pure.
#pragma once

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "diagnose/suspicion.h"

namespace falcon::control {

/// After a validation that found nobody the same suspicion waits for 5 s, and twice as long each time. That goes for
/// the same suspects at the same strength only: another one, or one that is stronger, is news, and may be tested at
/// once.
class BackOff {
 public:
  /// So much more growth than when it was tested is stronger: what counts as slow (Falcon, arXiv 2410.12588, section
  /// 4.3), once again. Growths of one cause differ by less from profile to profile.
  static constexpr double stronger = 1.2;

  /// Whether all that is suspected was tested in vain a short time ago.
  bool holds(const diagnose::Suspicion& suspicion, Nanoseconds now) const {
    return now < notBefore_ && isKnown(suspicion);
  }
  void foundNobody(const diagnose::Suspicion& suspicion, Nanoseconds now) {
    pause_ = isKnown(suspicion) ? 2 * pause_ : shortest;
    notBefore_ = std::max(notBefore_, now + pause_);
    for (const auto& each : suspicion.ranks) remember(ranks_, each.rank, each.growth);
    for (const auto& each : suspicion.groups) remember(groups_, each.communicator, each.growth);
  }
  void foundSomebody() { *this = {}; }

 private:
  static constexpr Nanoseconds shortest = 5s;

  template <class Key>
  static void remember(std::map<Key, double>& tested, Key key, double growth) {
    double& known = tested[key];
    known = std::max(known, growth);
  }
  template <class Key>
  static bool contains(const std::map<Key, double>& tested, Key key, double growth) {
    const auto found = tested.find(key);
    return found != tested.end() && growth < stronger * found->second;
  }
  bool isKnown(const diagnose::Suspicion& suspicion) const {
    return std::all_of(suspicion.ranks.begin(), suspicion.ranks.end(),
                       [&](const auto& each) { return contains(ranks_, each.rank, each.growth); }) &&
           std::all_of(suspicion.groups.begin(), suspicion.groups.end(),
                       [&](const auto& each) { return contains(groups_, each.communicator, each.growth); });
  }

  std::map<Rank, double> ranks_;             ///< tested in vain, with their growth then
  std::map<CommunicatorId, double> groups_;  ///< likewise
  Nanoseconds pause_{0};
  Nanoseconds notBefore_{0};
};

}  // namespace falcon::control
