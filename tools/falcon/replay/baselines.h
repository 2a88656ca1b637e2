// The detectors of the papers' tables, for comparison. They do what the papers say, faults included: the level before
// the change is what they compare with, nothing is known of spikes, and warm-up counts.
#pragma once

#include <deque>

#include "replay/detectors.h"

namespace falcon::replay {

/// Turns bare changes into events: the first rise is an onset; while slow, a rise is a worsening, and a fall is a
/// relief where it leads back to within the threshold of the level before the onset, else an easing. A fall of a
/// healthy job is none.
class Narrator {
 public:
  explicit Narrator(double threshold) : threshold_(threshold) {}
  std::optional<instrument::Change> tell(double before, double after, double confidence, std::int64_t sample);

 private:
  const double threshold_;
  bool slow_ = false;
  double healthy_ = 0;
};

/// The mean of the newest 10 iterations against the mean of the 10 before: the threshold more or less is a change.
/// After one it starts with new windows.
class WindowDetector : public Detector {
 public:
  explicit WindowDetector(double threshold) : threshold_(threshold), narrator_(threshold) {}
  std::optional<instrument::Change> add(double milliseconds) override;

 private:
  const double threshold_;
  std::deque<double> window_;
  std::int64_t added_ = 0;
  Narrator narrator_;
};

/// Adams and MacKay's algorithm with normal data of unknown mean and variance: a change once the probability that a new
/// run began since the last change exceeds 0.9, and it has two samples. Verified: the means of up to 10 iterations
/// before and since differ by the threshold. Source: Falcon, arXiv 2410.12588, section 4.2.
class BocdDetector : public Detector {
 public:
  enum class Verification { none, meanChange };
  BocdDetector(Verification verification, double threshold)
      : verification_(verification), threshold_(threshold), narrator_(threshold) {}

  std::optional<instrument::Change> add(double milliseconds) override;

 private:
  struct Run {
    std::int64_t start;
    double weight;
    double mean, count, shape, scale;  // normal-inverse-gamma
  };

  void update(double value);
  double meanOf(std::int64_t first, std::int64_t end) const;

  const Verification verification_;
  const double threshold_;
  std::vector<Run> runs_;       // the likeliest 200
  std::deque<double> history_;  // the newest milliseconds
  std::int64_t added_ = 0, runStart_ = 0;
  Narrator narrator_;
};

}  // namespace falcon::replay
