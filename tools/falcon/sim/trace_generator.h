// Labelled iteration times of one simulated job. Pure: the same seed makes the same job.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "replay/table_file.h"
#include "sim/trace_parameters.h"

namespace falcon::sim {

/// One fail-slow of a job.
struct SimulatedEpisode {
  replay::Episode labels;  ///< iterations from 1
  double size;             ///< 0.2: 20 % slower; of a staircase its last step, of one that becomes worse the first part
  std::int64_t atSize;     ///< iterations that are at least so slow
};

struct SimulatedJob {
  const Population* population;
  std::vector<double> milliseconds;  ///< of iterations 1, 2, ...
  std::vector<double> work;          ///< known work of each, relative to the first
  std::vector<SimulatedEpisode> episodes;
  /// Robust deviation of the mean of ten iterations' logarithms, of the job as it would be without episodes.
  double deviationOfTen;
};

/// Why an episode need not be found; `strong` ones must be.
enum class Strength { strong, below5Percent, below10Percent, shorterThan20, insideNoise };
inline constexpr int strengths = 5;
const char* nameOf(Strength strength);

/// Strong: 20 iterations or more, 10 % or more, and more than 3 robust deviations of the job's mean over 10 iterations.
Strength strengthOf(const SimulatedEpisode& episode, const SimulatedJob& job);

SimulatedJob simulateJob(const Population& population, std::mt19937_64& random, const TraceParameters& parameters = {});

/// `count` jobs, single-node and four-node ones in the papers' proportion; job i depends on seed and i only.
class SimulatedJobs {
 public:
  SimulatedJobs(int count, std::uint64_t seed, TraceParameters parameters = {})
      : count_(count), seed_(seed), parameters_(parameters) {}
  int count() const { return count_; }
  SimulatedJob operator[](int index) const;

 private:
  int count_;
  std::uint64_t seed_;
  TraceParameters parameters_;
};

/// As detectors see them: the time for the first iteration's work.
std::vector<replay::Recorded> timesOf(const SimulatedJob& job);

}  // namespace falcon::sim
