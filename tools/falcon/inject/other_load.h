// What other programs, and other machines of the same hypervisor, take of this machine while a job runs, by the
// kernel's account: a job whose share changes becomes slower or faster itself, and to say so is right.
#pragma once

#include <string>
#include <vector>

#include "base/event.h"
#include "inject/processor_use.h"
#include "machine/description.h"

namespace falcon::tools {

/// Mean cores that other programs used between two times, in seconds of CLOCK_MONOTONIC.
struct OtherUse {
  double start = 0, end = 0, cores = 0;
};

/// Stretch after stretch of a job's life, in order. Pure.
class OtherUses {
 public:
  void add(const OtherUse& use) { uses_.push_back(use); }
  /// Mean between two times; 0 where nothing was measured.
  double cores(double from, double to) const;
  /// By how many cores others used more than `before` in the busiest stretch between two times.
  double risen(double before, double from, double to) const;

 private:
  std::vector<OtherUse> uses_;
};

/// Cores of this machine that go to other things than the job's ranks and what these started.
class OtherLoad {
 public:
  explicit OtherLoad(const JobDescription& job);
  /// On average since the object was made or asked.
  double cores();
  /// Keeps what there was since the last time, where that is half a second ago or more. Call it again and again.
  void look();
  const OtherUses& uses() const { return uses_; }

 private:
  double busy_, since_, looked_;
  std::vector<ProcessorUse> ranks_;
  OtherUses uses_;
};

/// Whether something that Falcon said tells of other programs, and these used the machine indeed: said of the host, or
/// of an onset of nobody in particular, a few seconds after others used a core's seventh more than when the job was
/// found healthy. Relief of a host needs no more than that it was slow.
/// @param kind          of the event, as JSON has it
/// @param healthyUntil  when the job's healthy baseline had been taken
bool isOfOtherPrograms(const std::string& kind, const Culprit& culprit, double time, const OtherUses& uses,
                       double healthyUntil);

}  // namespace falcon::tools
