// Tells when a slow link is healthy again: beside healthy links that are probed at the same moment.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/types.h"
#include "validate/link_measurement.h"

namespace falcon::control {

/// A link's rate in a trap.
struct LinkRate {
  double bytesPerSecond = 0;
  transport::Medium medium = transport::Medium::socket;
};

struct HealthyPeer {
  Link link;
  double bytesPerSecond = 0;  ///< in the trap
};

/// Links to compare with, at most two: those of the same medium whose rate in the trap lies nearest to what the slow
/// link's was in health, and of equal ones those that carry least, since a probe beside the training measures what the
/// training leaves. Ends that are not the slow link's come first among equal ones.
/// @param healthy   links that looked healthy in the trap
/// @param expected  bytes per second that the slow link gave, or its peers give
/// @param moving    seconds an iteration in which bytes moved, as far as known
std::vector<HealthyPeer> healthyPeers(const std::map<Link, LinkRate>& healthy, transport::Medium medium,
                                      const Link& slow, double expected, const std::map<Link, double>& moving);

/// Pure. A probe runs beside the training, which takes something off its rate: so the best of the newest probes of each
/// slow direction is compared with the best of each peer in the same time: it need not be better than the worse one,
/// since unshaped links scatter by several times. The link is healthy when every direction that was slow gives 0.9 of
/// that (of its own share of it, where it always was slower than they) and clearly more than in the trap. Without peers
/// (two ranks, slow both ways) what counts is whether it is nearer to its healthy rate than to the slow one.
class LinkRelief {
 public:
  struct Direction {
    Link link;
    double slow = 0;     ///< bytes per second in the trap
    double healthy = 0;  ///< bytes per second that it gave before, or that its peers give
  };

  LinkRelief() = default;
  LinkRelief(std::vector<Direction> directions, std::vector<HealthyPeer> peers)
      : directions_(std::move(directions)), peers_(std::move(peers)) {}

  /// What a probe has to measure, the slow directions first.
  std::vector<Link> linksToProbe() const;
  /// @param rates  bytes per second of one probe; a link that gave no answer is missing
  /// True when the newest probes say that the link is healthy.
  bool add(const std::map<Link, double>& rates);
  /// The newest probe says that it is no longer as slow: the next ones should follow soon.
  bool mayBeHealthy() const;

 private:
  /// Bytes per second below which it is as slow as it was.
  static double least(const Direction& direction);
  std::optional<double> best(const Link& link) const;
  bool isHealthy(const Direction& direction) const;

  std::vector<Direction> directions_;
  std::vector<HealthyPeer> peers_;
  std::deque<std::map<Link, double>> newest_;
};

}  // namespace falcon::control
