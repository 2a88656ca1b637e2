// The papers' tables 4 and 5 over simulated jobs.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "sim/trace_generator.h"

namespace falcon::sim {

/// What one detector did over the jobs of one size. As in the papers a job is the unit: it is right to raise an onset
/// in a job with fail-slows, and to raise none in a healthy one.
struct JobCounts {
  int healthy = 0, healthyWithOnset = 0;
  int healthyWithMinor = 0;  ///< a minor slowness was told; a job's slow wave may be one
  int failSlow = 0, failSlowMissed = 0;

  double accuracy() const;
  double falsePositiveRate() const;
  double falseNegativeRate() const;
};

/// Episodes of one strength.
struct EpisodeCounts {
  int episodes = 0;
  int found = 0;            ///< an onset or a worsening from the start to five iterations after the end
  int foundWithinFive = 0;  ///< an onset within five iterations of the start
};

struct DetectorResult {
  std::string_view detector;
  JobCounts singleNode, fourNodes;
  std::array<EpisodeCounts, strengths> episodes{};
  int falseOnsets = 0;  ///< onsets outside of every episode, in all jobs
  int relieved = 0;     ///< strong episodes that end before the job and were left by a relief within 20 iterations
  int ended = 0;        ///< strong episodes that end at least 20 iterations before the job or the next one
  double onsetDelayMedian = 0, reliefDelayMedian = 0;         ///< of strong episodes, in iterations
  std::vector<int> jobsWithFalseOnset, jobsWithMissedStrong;  ///< numbers, for looking at
};

/// Runs each detector over each job.
std::vector<DetectorResult> compare(const SimulatedJobs& jobs, const std::vector<std::string_view>& detectors);

}  // namespace falcon::sim
