#include "diagnose/host_slowness.h"

#include <algorithm>

#include "base/format.h"

namespace falcon::diagnose {
namespace {

double jobCores(const HostUse& use) {
  return use.iteration > 0 ? use.processor / use.iteration : 0;
}

double othersCores(const HostUse& use) {
  return std::max(0.0, use.busyCores - jobCores(use));
}

}  // namespace

std::optional<HostExplanation> explanationOf(const HostObservation& host, const HostThresholds& thresholds) {
  const HostUse &before = host.healthy, &now = host.now;
  if (host.ownGrowth < thresholds.leastGrowth || before.processor <= 0 || now.processor <= 0) return std::nullopt;
  const double processorGrowth = now.processor / before.processor;
  HostExplanation found{host.host, HostCause::moreProcessorTime, host.ownGrowth, {}};
  const std::string ranks = host.ranks == 1 ? "its rank computes" : fmt::format("its {} ranks compute", host.ranks);
  if (processorGrowth > 1 + thresholds.processorShare * (host.ownGrowth - 1)) {
    found.evidence = fmt::format(
        "{} {:.2f} times longer, with {:.2f} times the processor time: there is more to do, or the processors work "
        "more "
        "slowly",
        ranks, host.ownGrowth, processorGrowth);
    return found;
  }
  // What the job did not get of what it used when it was healthy. Processors that work more slowly besides, as all do
  // that are busier, take nobody's share.
  const double lost = jobCores(before) * (1 - std::min(1.0, std::max(1.0, processorGrowth) / host.ownGrowth));
  const double others = othersCores(now) - othersCores(before), stolen = now.stolenCores - before.stolenCores;
  const double taken = std::max(others, 0.0) + std::max(stolen, 0.0);
  const double idle = host.processors - now.busyCores - now.stolenCores;
  if (taken < std::max(thresholds.leastCores, thresholds.leastMatch * lost)) return std::nullopt;
  if (host.processors > 0 && idle > thresholds.mostIdle * host.processors) return std::nullopt;
  found.cause = stolen > others ? HostCause::hypervisor : HostCause::otherPrograms;
  const bool programs = found.cause == HostCause::otherPrograms;
  found.evidence = fmt::format(
      "CPU contention from outside: {} {:.1f} of its {} processors ({:.1f} when the job was healthy); {} {:.2f} times "
      "longer, with {:.2f} times the processor time",
      programs ? "programs that are not of this job use" : "the hypervisor gives other machines",
      programs ? othersCores(now) : now.stolenCores, host.processors,
      programs ? othersCores(before) : before.stolenCores, ranks, host.ownGrowth, processorGrowth);
  return found;
}

double unexplainedGrowth(double iterationGrowth, std::span<const HostExplanation> hosts) {
  double explained = 1;
  for (const HostExplanation& host : hosts) explained = std::max(explained, host.growth);
  return std::max(1.0, iterationGrowth / explained);
}

}  // namespace falcon::diagnose
