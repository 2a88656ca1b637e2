// Single slow iterations, and some in a row: how often this job has them, and so how many in a row are none.
#pragma once

#include <cstdint>

#include "instrument/change_limits.h"

namespace falcon::instrument {

/// Counts streaks of samples off the level that end without a change. Used by one thread.
class SpikeModel {
 public:
  explicit SpikeModel(ChangeLimits limits) : limits_(limits) {}

  /// The next sample.
  /// @param distance   from the level in force
  /// @param deviation  of a sample
  /// @param sample     its number
  void add(double distance, double deviation, std::int64_t sample);

  /// Of all samples.
  double rate() const { return (0.02 + spikes_) / (20 + watched_); }
  /// The same with more doubt, for run_length.h.
  double outlierRate() const;
  bool areFrequent() const { return spikes_ > 4 && rate() > 0.03; }
  /// Newest samples in a row that are off the level: > 0 above, < 0 below.
  int streak() const { return streak_; }
  void endStreak() { streak_ = 0; }
  /// As many samples as make it unlikely (less than one in a million) that they are all spikes, at the rate seen so
  /// far, and two more than the longest burst of spikes lately; more in a young job, which may have shown one of two
  /// modes only.
  /// @param distance  of the newest sample from the level
  /// @param added     samples so far
  int lastingSamples(double distance, std::int64_t added) const;
  /// The highest burst lately; 0: none.
  double burstHeight(std::int64_t added) const;
  /// Bursts are what the healthy job does now and then, and no mode of it.
  bool inBursts() const;

  /// What was told as a change was a burst.
  void addBurst(int length, double height, std::int64_t added);
  /// So many of what was counted were none.
  void forgive(std::int64_t count);
  /// Samples among the first ones that may be a second mode of the healthy iterations.
  void beginModes(int others) { otherMode_ = others; }
  /// The job has calmed down: what was before is no spike.
  void calm();
  /// The same, and it is young.
  void restart();
  /// Samples are numbered anew.
  void rebase();

 private:
  void noteBurst(int length, double height, std::int64_t added);

  const ChangeLimits limits_;
  double spikes_ = 0, watched_ = 0;  // both fade
  int streak_ = 0;
  double distanceOfStreak_ = 0;
  int otherMode_ = 0;
  int longestBurst_ = 0;  // of streaks that ended without a change
  std::int64_t burstAt_ = 0;
  double burstHeight_ = 0;  // of those, by their last sample
};

/// While slow: samples in a row where the healthy ones were, and how often there are some. Used by one thread.
class HealthyVisits {
 public:
  void add(bool isHealthy);
  /// The newest ones are judged anew.
  void recount() { visit_ = 0; }
  void again(bool isHealthy) { visit_ = isHealthy ? visit_ + 1 : 0; }
  void clear() { *this = HealthyVisits(); }
  int streak() const { return visit_; }
  /// Share of the slow samples.
  double rate() const { return (0.5 + visits_) / (20 + slowSamples_); }

 private:
  int visit_ = 0;
  double visits_ = 0, slowSamples_ = 0;  // both fade
};

}  // namespace falcon::instrument
