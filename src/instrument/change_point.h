// Where a fail-slow starts and ends, seen in the iteration times of one rank.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "instrument/run_length.h"

namespace falcon::instrument {

/// Onset and relief lead from and to the healthy level; worsening and easing lie between.
enum class ChangeKind : std::uint8_t { onset, worsening, easing, relief };
/// "onset", "worsening", "easing", "relief".
const char* nameOf(ChangeKind kind);

/// A lasting change of the iteration time.
struct Change {
  ChangeKind kind = ChangeKind::onset;
  double before = 0;        ///< milliseconds, the level that was in force
  double after = 0;         ///< milliseconds, the new level: a median
  double confidence = 0;    ///< probability that the run has changed (BOCD)
  std::int64_t sample = 0;  ///< number of the first sample at the new level, counting from 0 since the last rebase
};

struct ChangePointOptions {
  double threshold = 0.1;  ///< smallest relative change that counts
};

/// Watches iteration times as they come. A change is reported once it is likely (BOCD, probability above 0.9) and
/// verified: lasting (at least 3 samples; more where spikes are frequent), at least the threshold, and clear of the
/// noise. Learns the healthy level from the first steady samples; a speed-up of a healthy job only lowers that level,
/// silently. A single slow iteration is never a change. Work and memory are bounded. Used by one thread. Source:
/// Falcon, arXiv 2410.12588, section 4.2 (BOCD, then verification by a mean change of 10 %).
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

 private:
  enum class State { learning, healthy, slow };
  struct Candidate {
    std::int64_t start = 0;
    double level = 0, confidence = 0;
    bool settled = false;  // its samples agree with each other
  };

  struct Residual {
    std::int64_t sample;
    double value;
  };

  double noise() const;
  double memoryBefore(std::int64_t end) const;
  std::vector<double> newest(std::int64_t count) const;
  std::optional<Candidate> findChange() const;
  std::optional<Candidate> lastingStreak(double sigma) const;
  std::optional<Candidate> newRun(double sigma) const;
  std::optional<Change> accept(const Candidate& candidate, double sigma);
  bool isSettled(double sigma) const;
  std::vector<double> atLevel() const;
  void countSpikes(double value, double sigma);
  void refineLevel();
  int lastingSamples() const;

  const double threshold_;  // of the logarithm
  State state_ = State::learning;
  RunLengthPosterior posterior_;
  std::deque<double> history_;      // logarithms of the newest samples
  std::deque<Residual> residuals_;  // of the newest samples at a level: how far from it
  std::int64_t added_ = 0;
  double healthy_ = 0, level_ = 0;
  std::int64_t levelStart_ = 0;  // first sample at the level in force
  int streak_ = 0;               // newest samples in a row that are off the level: > 0 above, < 0 below
  double spikes_ = 0, watched_ = 0;
};

}  // namespace falcon::instrument
