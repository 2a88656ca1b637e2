// Where a fail-slow starts and ends, seen in the iteration times of one rank.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "instrument/drift_sum.h"
#include "instrument/growth.h"
#include "instrument/minor_slowness.h"
#include "instrument/noise_estimate.h"
#include "instrument/periodic_pattern.h"
#include "instrument/run_length.h"

namespace falcon::instrument {

/// Onset and relief lead from and to the healthy level; worsening and easing lie between. Minor is what stays above it
/// by half of what a change is, for 200 iterations (minor_slowness.h).
enum class ChangeKind : std::uint8_t { onset, worsening, easing, relief, minor, minorOver };
/// "onset", "worsening", "easing", "relief", "minor", "minor-over".
const char* nameOf(ChangeKind kind);

/// A lasting change of the iteration time.
struct Change {
  ChangeKind kind = ChangeKind::onset;
  double before = 0;        ///< milliseconds, the level that was in force
  double after = 0;         ///< milliseconds, the new level
  double confidence = 0;    ///< probability that the run has changed (BOCD; CUSUM where it crept)
  std::int64_t sample = 0;  ///< number of the first sample at the new level, counting from 0 since the last rebase
};

struct ChangePointOptions {
  double threshold = 0.1;  ///< smallest relative change that counts; half of it, if it lasts, is minor
};

/// Watches iteration times as they come. A change is reported once it is likely (BOCD, probability above 0.9) and
/// verified: lasting (at least 3 samples; more where spikes are frequent), at least the threshold, and clear of the
/// noise as this job has shown it. What creeps below that is compared with a level that stands still (CUSUM). Learns
/// the healthy level from the first steady samples; a speed-up of a healthy job only lowers that level, silently. A
/// single slow iteration is never a change, nor are healthy iterations that alternate. Work and memory are bounded.
/// Used by one thread. docs/detection.md tells it in full.
/// Source: Falcon, arXiv 2410.12588, section 4.2 (BOCD, then verification by a mean change of 10 %).
class ChangePointDetector {
 public:
  explicit ChangePointDetector(ChangePointOptions options = {});

  /// The next iteration's time; values that are not positive are ignored.
  std::optional<Change> add(double milliseconds);

  /// The work per iteration was changed on purpose: learns the healthy level anew and reports nothing meanwhile.
  void rebase();

  /// 0 while the healthy level is being learnt.
  double healthyMilliseconds() const;
  /// The level in force, 0 while it is being learnt.
  double currentMilliseconds() const;
  bool slow() const { return state_ == State::slow; }
  /// The healthy level lies clearly below what `samples` iterations have told: by half of what a change is, and by
  /// three standard errors.
  bool isHealthyBelow(double milliseconds, int samples) const;
  /// A minor slowness was told and is not over. An onset takes its place, without a word of its end.
  bool minor() const { return minor_.active(); }

 private:
  enum class State { learning, healthy, slow };
  static constexpr std::int64_t longestWindow = 48;
  static constexpr std::int64_t learningSamples = 6;
  /// Slow ones among the first iterations are warm-up, also where quick ones lie between: neither noise nor spikes.
  static constexpr std::int64_t warmUpSamples = 16;
  /// A change that is no alternation of healthy iterations: half as long again, and clearly more than what counts.
  double large() const { return std::max(0.45, 1.5 * threshold_); }
  /// A computer's iteration time is never steadier than this, however few samples say so.
  static constexpr double leastNoise = 0.01;
  /// A level is estimated anew from all its samples as long as these are few, then follows with this share a sample.
  static constexpr std::int64_t fewSamples = 16, followedSamples = 64;
  /// So many samples in a row off the level are no spikes: if they are no change worth a word, the level has moved.
  static constexpr int movedSamples = 8;
  static constexpr int shortestChange = 3;  ///< two spikes, however high, are none
  static constexpr int wildSamples = 4;     ///< of a level several times as high

  struct Candidate {
    std::int64_t start = 0;
    double level = 0, confidence = 0;
    bool crept = false;  // not a step: seen against the anchor
  };

  // Samples.
  std::vector<double> newest(std::int64_t count) const;
  NoiseEstimate& noise() { return state_ == State::slow ? slowNoise_ : healthyNoise_; }
  double deviation() const;
  double memory() const;
  void countSpikes(double value);
  void countBurst(int length, double height);
  bool isVisit(double value) const;
  void countVisits(double value);
  double spikeRate() const;
  int lastingSamples() const;
  void settle(std::int64_t end);

  // The first healthy level, see change_learning.cc.
  void learn();
  void learnLevel(const std::vector<double>& samples, double deviation);
  bool learntWarmUp() const;
  void learnAnew();
  std::int64_t calmSamples() const;
  void learnCalm(std::int64_t count);

  // Healthy iterations that alternate, see change_pattern.cc.
  void refindPattern();
  void followPattern();
  void setPattern(PeriodicPattern pattern, std::int64_t since);

  // Candidates, see change_candidates.cc.
  std::optional<Candidate> healthyStreak() const;
  std::optional<Candidate> lastingStreak() const;
  std::optional<Candidate> clearestWindow() const;
  std::optional<Candidate> drift() const;

  // Levels.
  bool isSettled() const;
  bool isBurst(double level) const;
  bool isBeyondSpikes() const;
  bool isGrowing() const;
  int belonging(const Candidate& candidate) const;
  double scatterOfLevel(std::int64_t end) const;
  void refineLevel();
  void lowerHealthy();
  double levelError() const;
  void addToDrift(double value);

  // Decisions.
  std::optional<Change> nextChange();
  std::optional<Change> nextMinor(double value);
  std::optional<Change> accept(const Candidate& candidate);
  std::optional<Change> silentReturn();
  Change relieve(const Candidate& candidate, double before);
  bool isBackToHealthy(double level, double error) const;
  void enterLevel(const Candidate& candidate, State state);

  const double threshold_;  // of the logarithm
  MinorSlowness minor_;
  State state_ = State::learning;
  RunLengthPosterior posterior_;
  std::deque<double> raw_, history_;  // logarithms of the newest samples, as they came and without the pattern
  PeriodicPattern pattern_;
  std::int64_t patternSince_ = 0;  // samples before this one were of another pattern, or of another turn of it
  std::int64_t added_ = 0;

  NoiseEstimate healthyNoise_, slowNoise_;
  std::int64_t settled_ = 0;  // samples before this one are part of the noise or of no level

  double level_ = 0;                              // in force; follows slow movements
  double anchor_ = 0;                             // where the level was when it was entered
  double entered_ = 0;                            // the same, as it was known then
  double healthy_ = 0;                            // the first healthy level
  std::int64_t healthySamples_ = 0;               // that told it
  double healthyCeiling_ = 0;                     // what counts as healthy lies below this plus the threshold
  std::int64_t levelStart_ = 0;                   // first sample at the level in force
  std::int64_t slowSince_ = 0;                    // first sample of the onset
  bool baselineOpen_ = true, anchorOpen_ = true;  // still refined
  DriftSum upward_, downward_;

  int otherMode_ = 0;  // samples that may be a second mode of a young job's healthy iterations
  double distanceOfStreak_ = 0;
  int streak_ = 0;        // newest samples in a row that are off the level: > 0 above, < 0 below
  int longestBurst_ = 0;  // of streaks that ended without a change
  std::int64_t burstAt_ = 0;
  double burstHeight_ = 0;  // of those, by their last sample
  double spikes_ = 0, watched_ = 0;
  int visit_ = 0;  // newest samples in a row at the healthy level, while slow
  double visits_ = 0, slowSamples_ = 0;
};

}  // namespace falcon::instrument
