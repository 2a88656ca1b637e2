// What may be a change: where the newest samples differ from the level, and from where on. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "instrument/alternation.h"
#include "instrument/healthy_level.h"
#include "instrument/run_length.h"
#include "instrument/spike_model.h"

namespace falcon::instrument {

struct Candidate {
  std::int64_t start = 0;  ///< number of its first sample
  double level = 0, confidence = 0;
  bool crept = false;  ///< not a step: seen against the anchor
};

/// What a search looks at, as it is after the newest sample. Valid as long as its parts are.
struct Evidence {
  const ChangeLimits& limits;
  const Alternation& samples;
  const PresentLevel& level;
  const SpikeModel& spikes;
  const RunLengthPosterior& posterior;
  double deviation = 0, memory = 1;  ///< of a sample, NoiseEstimate
  std::size_t noiseSamples = 0;      ///< that told the healthy noise

  double newestDistance() const { return samples.values().back() - level.value; }
  int lastingSamples() const { return spikes.lastingSamples(newestDistance(), samples.added()); }
};

/// Four samples in a row, each clearly higher than any spike that is remembered, are no burst, however little they
/// agree.
bool isBeyondSpikes(const Evidence& evidence);

/// Sample after sample far off the level: a change even while the new level is still settling.
/// @param wild  these are beyond spikes
std::optional<Candidate> lastingStreak(const Evidence& evidence, bool wild);

/// Sample after sample where the healthy ones were: that level is known, so less needs to be shown than for a new one.
std::optional<Candidate> healthyStreak(const Evidence& evidence, const HealthyVisits& visits,
                                       const HealthyLevel& healthy);

/// The newest samples whose mean is clearest of the noise, though single ones may not be.
std::optional<Candidate> clearestWindow(const Evidence& evidence);

/// The level has crept away from where it was entered.
std::optional<Candidate> drift(const Evidence& evidence);

/// How many samples lie beyond the middle of the way to the candidate's level, or far enough to be a change themselves.
int belonging(const Evidence& evidence, const Candidate& candidate);

}  // namespace falcon::instrument
