// Where a fail-slow starts and ends, seen in the iteration times of one rank.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "instrument/alternation.h"
#include "instrument/change_candidates.h"
#include "instrument/change_limits.h"
#include "instrument/healthy_level.h"
#include "instrument/minor_slowness.h"
#include "instrument/noise_estimate.h"
#include "instrument/run_length.h"
#include "instrument/spike_model.h"

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

  // What is known of a sample.
  NoiseEstimate& noise() { return state_ == State::slow ? slowNoise_ : healthyNoise_; }
  double deviation() const;
  double memory() const;
  double levelError() const;
  double scatterOfLevel(std::int64_t end) const;
  bool isHealthy(double value) const;
  Evidence evidence() const;

  // The first healthy level, see change_learning.cc.
  void learn();
  void learnAnew();
  void learnCalm(std::int64_t count);
  void learnLevel(const std::vector<double>& samples, double deviation);
  std::int64_t calmSamples() const;

  // Samples and levels, see change_levels.cc.
  void keep(double milliseconds);
  void followPattern();
  void refindPattern();
  void restartPosterior();
  void settle(std::int64_t end);
  void addToDrift(double value);
  void refineLevel();
  void lowerHealthy();
  void enterLevel(const Candidate& candidate, State state);

  // Decisions.
  std::optional<Change> nextChange();
  std::optional<Change> nextMinor();
  std::optional<Change> accept(const Candidate& candidate);
  std::optional<Change> acceptHealthy(const Candidate& candidate, double change, Change found);
  std::optional<Change> acceptSlow(const Candidate& candidate, double reference, Change found);
  std::optional<Change> silentReturn();
  Change relieve(const Candidate& candidate, double before);
  bool isBackToHealthy(double level, double error) const;
  bool isSettled() const;
  bool isBurst(double level) const;
  bool isGrowing() const;

  const ChangeLimits limits_;
  State state_ = State::learning;
  Alternation samples_;
  RunLengthPosterior posterior_;
  NoiseEstimate healthyNoise_, slowNoise_;
  std::int64_t settled_ = 0;  // samples before this one are part of the noise or of no level
  HealthyLevel healthy_;
  PresentLevel level_;
  SpikeModel spikes_;
  HealthyVisits visits_;
  MinorSlowness minor_;
  std::int64_t slowSince_ = 0;  // first sample of the onset
};

}  // namespace falcon::instrument
