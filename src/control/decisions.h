// From what the controller has recorded to what instrument and rebalance decide: pure glue, no state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/event.h"
#include "control/job_view.h"

namespace falcon::control {

/// Who may be to blame, before any test. Ranks are the job's.
struct Suspects {
  std::vector<Rank> ranks;             ///< compute more slowly than their own baseline, beyond what all ranks do
  std::vector<CommunicatorId> groups;  ///< communicate more slowly than their own baseline
  std::string reason;
  bool empty() const { return ranks.empty() && groups.empty(); }
};
/// Compares every member's newest `window` iterations with its healthy baseline.
Suspects suspect(const JobView& job, std::size_t window);

/// How much more slowly than in its baseline a rank computes, against the median of all ranks; 1 where nothing is
/// known.
double ownTimeGrowth(const JobView& job, ProcessId process, std::size_t window);

/// What to do about a culprit.
struct Remedy {
  enum class Kind { none, splitMicroBatches, reroute, advise } kind = Kind::none;
  std::vector<int> microBatches;  ///< by replica
  std::vector<RingPlan> rings;
  std::string text;  ///< what and why, one sentence
  std::string action() const {
    return kind == Kind::splitMicroBatches ? "split" : kind == Kind::reroute ? "reroute" : "none";
  }
};
Remedy remedyFor(const JobView& job, const Culprit& culprit, bool deterministic, std::size_t window);
/// The remedy that takes `culprit`'s remedy back, given those still slow.
Remedy undoOf(const JobView& job, const Remedy& applied);

/// Job rank of a communicator's rank and back.
std::optional<Rank> communicatorRank(const CommunicatorFormed& communicator, Rank jobRank);

}  // namespace falcon::control
