// From a verdict to a plan. Decides only; control carries it out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/event.h"
#include "rebalance/node_permutation.h"
#include "rebalance/ski_rental.h"
#include "topology/layout.h"

namespace falcon::rebalance {

/// Bytes an iteration over one link.
struct Carried {
  double all = 0;
  double aroundRing = 0;  ///< of these, that another ring order would take elsewhere
};

/// What the planner knows of a communicator.
struct CommunicatorFacts {
  CommunicatorId id = 0;
  std::string name;                ///< "data parallel 0"; "": its id
  std::vector<Rank> members;       ///< job ranks by rank of the communicator
  std::vector<int> nodes;          ///< by rank of the communicator; empty: every rank is a node of its own
  std::vector<Rank> ring;          ///< the order in force, ranks of the communicator
  std::vector<Rank> firstRing;     ///< the order it was made with
  bool ringCollectives = true;     ///< its collectives go round the ring, and the order can be changed
  std::vector<Link> pointToPoint;  ///< ranks of the communicator that send to each other
  /// What its members were seen to send, ranks of the communicator; empty: not seen yet.
  std::map<Link, Carried> carried{};
  /// The same in health, bytes an iteration: before a ring was changed.
  std::map<Link, double> usual{};
};

/// What a split of the micro-batches must keep to, beside their number.
struct SplitLimits {
  int multiple = 1;              ///< every replica gets a multiple of it: an interleaved pipeline's stages (Megatron)
  bool evenOnly = false;         ///< expert groups span the replicas: all must compute alike
  std::vector<int> most, least;  ///< by replica, as memory allows; empty: no limit, and 1
  bool operator==(const SplitLimits&) const = default;
};

/// What the planner knows of the job.
struct JobFacts {
  std::vector<CommunicatorFacts> communicators;
  std::optional<topology::Layout> layout;  ///< registered by the framework
  std::vector<Rank> rankAt;                ///< by place of the layout, who has it; empty: not known of all
  std::vector<int> nodeOfPlace;            ///< by place of the layout, the node of who has it; empty: likewise
  /// By job rank: whose part it has, numbered as ranks; empty: roles cannot be exchanged.
  std::vector<int> roles;
  std::map<Rank, std::string> addresses;     ///< by job rank, where known: a slow link is one between addresses
  TrafficVolumes volumes;                    ///< all 0: unknown
  int microBatches = 0;                      ///< of an iteration, over all replicas; 0: unknown
  std::vector<int> microBatchesNow;          ///< the split in force; empty: equal
  std::vector<double> secondsPerMicroBatch;  ///< of each replica's slowest member; empty: unknown
  std::vector<double> fillSeconds;           ///< of each replica, as Replica has them; empty: unknown
  SplitLimits limits;
  std::vector<double> stageSeconds;    ///< in health, for a micro-batch, by stage; empty: unknown
  std::map<Rank, double> timesAsLong;  ///< that ranks compute for a micro-batch, as in health, where known
  std::vector<int> railOfRank;         ///< by job rank: its NIC's rail; empty: unknown
  bool deterministic = false;          ///< the order of float sums may not change
  /// What a restart from a checkpoint is known to take, seconds; nothing: the framework cannot be asked for one.
  std::optional<double> restartSeconds;
  /// What an exchange of places between nodes is known to take; nothing: the framework cannot move its state.
  std::optional<double> swapSeconds;
  std::vector<int> firstRoles;  ///< before the first exchange, by job rank; empty: each rank had its own
  /// Bytes that a rank has left for another role's state, by job rank, infinite where that is not known; and bytes that
  /// a role takes while it moves, by role. Both empty: nothing is known of either.
  std::vector<double> memoryLeft, memoryOfRole;
};

enum class PlanKind : std::uint8_t { none, splitMicroBatches, reroute, advise, restart, swap };

struct Plan {
  PlanKind kind = PlanKind::none;
  CulpritKind against = CulpritKind::none;  ///< the kind of culprit it helps against, or helped
  std::vector<int> microBatches;            ///< splitMicroBatches: by replica
  std::vector<RingPlan> rings;              ///< reroute: fromCollective is not set, the agreement finds it
  /// swap: who goes where. advise: at the next chance; nothing: checkpoint and restart.
  std::optional<NodePermutation> permutation;
  std::vector<int> roles;      ///< swap: by job rank, the role that it takes; empty: roles cannot be exchanged
  std::vector<Link> avoid;     ///< swap: slow links, over which no state should go
  std::vector<Rank> leaveOut;  ///< restart: whose places somebody else is to take
  double priceSeconds = 0;     ///< restart, swap: what it will cost
  bool ifTooLittle = false;    ///< swap, restart: only where what was done before helps too little
  double gain = 0;             ///< splitMicroBatches: share of the computing time that is saved, 0 to 1
  std::string reason;          ///< one sentence
};

/// What would help against all culprits known together. A slow rank gets fewer micro-batches, and where that helps too
/// little the roles of inner stages, among other slow ones; slow links are left out of every ring that uses them. What
/// cannot be done (two ranks; a link slow both ways with three; send/recv over the link; no layout; deterministic sums)
/// turns into an exchange of places or a restart, where the framework can be asked for it, else into advice that names
/// the obstacle. Where it can be restarted, that also stands behind every other remedy: for when that helps too little.
///
/// @param culprits  those not relieved; ranks of the job
/// @return          one plan per kind of remedy needed, ranks first; a plan of kind none says why nothing is to be done
std::vector<Plan> plansFor(const JobFacts& job, std::span<const Culprit> culprits);

/// What to take back now that only `culprits` are left: rings and splits that would not be chosen today. Empty when all
/// that is in force still pays.
std::vector<Plan> undoFor(const JobFacts& job, std::span<const Culprit> culprits);

}  // namespace falcon::rebalance
