// What figures of ranks say as observations, and as a sentence. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/measurements.h"
#include "diagnose/observation.h"
#include "diagnose/thresholds.h"

namespace falcon::diagnose {

/// Each figure is compared with the median of all ranks, so that a busy machine accuses nobody. With two ranks the
/// other one stands for the median; one alone tells nothing without a baseline.
///  - Own time: the growth over the rank's own baseline, beyond its peers' growth.
///  - The compute test: against its own healthy score where all have one, since processors need not be equal. What it
///    lost by waiting for a core, not by the processor's speed, counts only as far as the rank's own time grew with it:
///    a core that was taken away for this half second says little (one of eight ranks got 0.4 of its peers' share on a
///    busy machine).
///  - What a quota or the hypervisor took from it in the test, beyond what was taken from its peers.
///  - Its GPU, by the rules of validate/gpu_cause.h.
class RankEvidence {
 public:
  RankEvidence(const std::vector<RankFigures>& ranks, const std::map<Rank, validate::GpuSample>& gpus,
               const Thresholds& thresholds);

  const std::vector<Observation>& observations() const { return observations_; }
  /// "matrix products 2.1 times slower than its peers', own time ...: its processor does less work (CPU quota: ...)".
  /// @param named  the cause that the kernel's counters tell is added
  std::string textOf(Rank rank, bool named) const;
  /// Ranks that look slow by a figure, and by how much (a logarithm), whatever the account makes of it.
  const std::map<Rank, double>& lookSlow() const { return lookSlow_; }

 private:
  struct Facts {
    RankFigures figures;
    double score = unknown, own = unknown, heldBack = unknown;  ///< above peers; logarithms
    validate::CauseEvidence counted;                            ///< with the slowness
    std::string gpu;                                            ///< a sentence; empty: not slow
  };

  void add(Quantity quantity, Rank rank, double value, double sigma, double aloneFrom);
  void addGpus(const std::map<Rank, validate::GpuSample>& gpus);

  const Thresholds thresholds_;
  std::map<Rank, Facts> facts_;
  std::vector<Observation> observations_;
  std::map<Rank, double> lookSlow_;
  validate::CauseEvidence usual_;
};

}  // namespace falcon::diagnose
