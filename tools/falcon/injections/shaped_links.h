// Links that are all held at one rate, so that what a test of them measures is the network and not the machine's cores.
#pragma once

#include <map>

#include "demo/schedule.h"
#include "inject/traffic_limit.h"
#include "machine/description.h"

namespace falcon::injections {

/// The links between all ranks that sum gradients together, both directions. They go with the job's network namespaces:
/// nothing has to be undone.
class ShapedLinks {
 public:
  /// Throws std::runtime_error where the job has no links of its own, or they cannot be limited.
  ShapedLinks(const tools::JobDescription& job, const demo::JobShape& shape, double bitsPerSecond);

  /// Slower than all others by this factor from now on; 1: as fast as they are. Throws std::runtime_error.
  void slow(Link link, double factor);
  /// Bytes that it has carried so far.
  double bytes(Link link) const;
  double bytesPerSecond() const { return bitsPerSecond_ / 8; }

 private:
  const double bitsPerSecond_;
  std::map<Link, tools::TrafficLimit> limits_;
};

/// The ranks before and behind this one in its gradients' ring.
Link neighboursOf(Rank rank, const demo::JobShape& shape);

}  // namespace falcon::injections
