// S3: which node holds which places of the layout, when links or ranks are slow.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "topology/layout.h"

namespace falcon::rebalance {

/// Bytes an iteration between two neighbours of a group: in a ring for data and tensor parallelism, between adjacent
/// stages for pipelines, one way.
struct TrafficVolumes {
  double data = 0, pipeline = 0, tensor = 0;
};

/// A transformer, for the volumes where nothing was measured.
struct ModelShape {
  double layers = 0, hidden = 0, context = 0;           ///< L, h, n_ctx
  double microBatch = 0, microBatches = 0;              ///< b, and m of a replica
  double bytesPerGradient = 2, bytesPerActivation = 2;  ///< k, and what the paper's elements are multiplied with
};
/// Source: Falcon, arXiv 2410.12588, section 5.3 (TP 8 b m n_ctx h L (T-1)/(P T); DP 12 k L h^2/(P T); PP m b n_ctx h).
TrafficVolumes volumesOf(const ModelShape& model, const topology::Layout& layout);

/// A link between two nodes, one way.
struct SlowNodeLink {
  int from = -1, to = -1;
  double timesAsLong = 4;  ///< as a healthy one takes for the same bytes; more than 1. Not measured: 4
};

/// Who holds which places now, and what is slow. A place is a rank of `layout`; what is said "of a place" of a rank is
/// said of the one that holds it now.
struct PlacementFacts {
  topology::Layout layout;
  std::vector<int> nodeOfPlace;         ///< by place
  TrafficVolumes volumes;               ///< all 0: links do not matter
  double linkBytesPerSecond = 1e9;      ///< of a healthy link between nodes
  std::vector<double> stageSeconds;     ///< in health, for a micro-batch, by stage; empty: 1 s each
  int microBatches = 1;                 ///< of a replica
  std::vector<double> timesAsLong;      ///< of a place: that its rank computes, 1 in health; empty: all are healthy
  std::vector<SlowNodeLink> slowLinks;  ///< between nodes
  std::vector<int> railOfPlace;         ///< of a place: its rank's NIC's rail; empty: there is one
  /// Of a place: bytes that its rank has left for another place's state, infinite where that is not known; empty:
  /// enough. And bytes that the place takes while it moves.
  std::vector<double> memoryOfRank, memoryOfPlace;
};

/// What an iteration takes by the model: computing of the slowest replica (the sum of its stages for one micro-batch,
/// and the slowest stage for the others), and what slow links add: the most of any for data, pipeline and tensor
/// parallelism each. Compared in this order.
struct PlacementCost {
  double seconds = 0;
  double slowLinkSeconds = 0;  ///< that slow links add, summed over all of them
  int slowStages = 0;          ///< stages with a slow rank
  int outerStages = 0;         ///< of these, first or last of the pipeline, which have the embedding and the head to do
  int moves = 0;               ///< nodes that take other places
};

/// A new order of the nodes. Whole nodes move, place by place: what was within a node stays within one.
struct NodePermutation {
  /// {node, the one whose places it takes}; only those that move, by node. Empty: nothing is better than it is.
  std::vector<std::pair<int, int>> moves;
  PlacementCost before, after;
  double slowBytesBefore = 0, slowBytesAfter = 0;  ///< an iteration, over all slow links
  /// No order of the nodes is better than this: the slowest rank alone in the best place for it. So `after` takes at
  /// most after.seconds / atLeastSeconds times as long as the best.
  double atLeastSeconds = 0;
  bool exact = false;  ///< all orders were looked at
};

/// So many orders of the nodes that are slow, or have a slow link, are looked at one by one: all of a job of 8 nodes;
/// one node of 40,000, two of 200.
inline constexpr std::size_t mostExactOrders = 41'000;

/// The best order of the nodes by PlacementCost. Between nodes of equally many ranks, with the same rails, whose
/// memory is enough for the places; nodes that nothing is wrong with move only to make room. Exact up to
/// `mostOrders`. Beyond, the slow ranks are packed into as few stages as they fill, interior ones first; then the ends
/// of slow links go where these carry nothing, which exists for who may go anywhere where there are as many nodes as
/// those that something is wrong with plus a node's slow links times its neighbours in the layout; then single
/// exchanges, as long as they help. How far that can be from the best says atLeastSeconds. 1,024 nodes take less than a
/// second.
///
/// @return  invalidArgument names what does not fit the layout
Result<NodePermutation> permuteNodes(const PlacementFacts& facts, std::size_t mostOrders = mostExactOrders);

/// The place that each rank takes, by its place now.
std::vector<Rank> placesAfter(std::span<const int> nodeOfPlace, const NodePermutation& permutation);

}  // namespace falcon::rebalance
