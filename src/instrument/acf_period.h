// The period as the papers find it, for comparison: by autocorrelation of the operations' numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

namespace falcon::instrument {

/// The first lag whose autocorrelation is at least 0.95; 0: none up to half of the values. The papers' code compares
/// enum values, so what differs only in size, peer or communicator is the same to it.
/// Source: Falcon, arXiv 2410.12588, section 4.1.
std::size_t firstCorrelatedLag(std::span<const double> values, std::size_t largestLag);

/// Cuts the process's calls every `period` calls. Looks for the period anew for every window. Used by one thread.
class AcfPeriod {
 public:
  static constexpr std::size_t window = 1024, largestLag = 256, evaluationInterval = 128;

  /// A period ends with this call.
  bool add(std::uint8_t operation);
  /// 0 while unknown.
  std::size_t period() const { return period_; }
  void reset();

 private:
  std::deque<double> values_;
  std::size_t period_ = 0, sinceCut_ = 0, sinceEvaluation_ = 0;
};

}  // namespace falcon::instrument
