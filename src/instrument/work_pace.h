// Iteration times judged by the work that was to be done: longer sequences are no slowness.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace falcon::instrument {

/// Turns the time of an iteration into that of the usual work, which is the median of the first eight iterations'. How
/// times follow the work is learnt: time grows as a power of it, 1 until some iterations with other work have told the
/// power (a part of an iteration, the gradients' sum for one, takes as long whatever the work; attention grows faster).
/// A job that tells no work is left alone. Bounded memory; used by one thread.
/// Source: ResiHP, arXiv 2605.06374 (sequences of other lengths are the commonest false alarm).
class WorkPace {
 public:
  /// Adds an iteration.
  /// @param work  0: not known
  /// @return      the time with the usual work, in the unit of `time`; nothing while the usual work is being learnt,
  ///              nor where an iteration's work is not known, in a job that tells it
  std::optional<double> add(double time, double work);
  /// The same of another time, without learning from it; as it is while the usual work is not known.
  double judged(double time, double work) const;
  /// The usual work; 0: not known.
  double usual() const { return usual_; }
  /// Rises when the job begins to tell its work, or tells it no longer: times before and after do not compare.
  int generation() const { return generation_; }

 private:
  struct Seen {
    double work, time;  // logarithms
  };
  void learnPower();

  std::optional<bool> told_;
  int others_ = 0;  // iterations in a row that do otherwise
  int generation_ = 0;
  double usual_ = 0, power_ = 1;
  std::vector<double> first_;  // works until the usual one is known
  std::vector<Seen> seen_;     // until the power is fixed
};

}  // namespace falcon::instrument
