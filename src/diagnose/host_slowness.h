// A host that slows all of its ranks, since others use its processors. No test can tell (all ranks are slow alike), and
// none is needed: the kernel counts who ran.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/types.h"
#include "diagnose/thresholds.h"

namespace falcon::diagnose {

/// Means over some iterations, of the job's ranks on one host.
struct HostUse {
  double iteration = 0;    ///< seconds
  double processor = 0;    ///< seconds an iteration that all of its ranks ran on a processor, together
  double busyCores = 0;    ///< of the host, by whomever
  double stolenCores = 0;  ///< of the host, that the hypervisor gave to others
};

struct HostObservation {
  std::string host;
  int processors = 0;
  int ranks = 0;
  HostUse healthy, now;
  /// How much longer the middle one of its ranks takes for its own work (outside of the library).
  double ownGrowth = 1;
};

/// Why the ranks of a host take longer for their own work, all of them.
enum class HostCause : std::uint8_t {
  otherPrograms,      ///< outside of the job, on the same processors
  hypervisor,         ///< other machines on the same hardware
  moreProcessorTime,  ///< they run for longer: there is more to do, or the processors work more slowly
};

struct HostExplanation {
  std::string host;
  HostCause cause = HostCause::otherPrograms;
  double growth = 1;     ///< of its ranks' own time
  std::string evidence;  ///< one sentence with the numbers

  /// The host is to blame. Who has more to do is slowed by nobody, and which of both it is no account tells.
  bool isCulprit() const { return cause != HostCause::moreProcessorTime; }
};

/// What explains that all ranks of the host take longer; nothing where no account of the kernel does.
std::optional<HostExplanation> explanationOf(const HostObservation& host, const HostThresholds& thresholds = {});

/// By what iterations became longer beyond what their slowest host explains; 1: it explains all of it.
double unexplainedGrowth(double iterationGrowth, std::span<const HostExplanation> hosts);

}  // namespace falcon::diagnose
