// What a placement of nodes costs: the part of node_permutation that is asked very often.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "rebalance/node_permutation.h"

namespace falcon::rebalance {

/// Less by PlacementCost's order; seconds that differ by rounding only are equal.
bool isBetter(const PlacementCost& one, const PlacementCost& other);

/// Nodes and the places that each holds now, both by index: slot i is what node i holds. A placement says who is in
/// which slot. Healthy nodes are alike, so only those that something is wrong with (marked) are looked at.
class Placement {
 public:
  /// `facts` are sound, and outlive it.
  explicit Placement(const PlacementFacts& facts);

  std::size_t size() const { return names_.size(); }
  int nameOf(std::size_t node) const { return names_[node]; }
  /// Nodes with a slow rank, then those with a slow link only.
  const std::vector<std::size_t>& marked() const { return marked_; }
  std::size_t stragglers() const { return stragglers_; }
  std::size_t nodeIn(std::size_t slot) const { return nodeIn_[slot]; }
  std::size_t slotOf(std::size_t node) const { return slotOf_[node]; }
  int stageOf(std::size_t slot) const;
  int replicaOf(std::size_t slot) const;

  /// Whether the node can be in the slot: its own, or one of as many ranks and the same rails, for which it has memory.
  bool fits(std::size_t node, std::size_t slot) const;
  /// The nodes in the two slots change places, whether they fit or not.
  void exchange(std::size_t one, std::size_t other);
  /// Whether they would fit after that.
  bool canExchange(std::size_t one, std::size_t other) const {
    return fits(nodeIn_[one], other) && fits(nodeIn_[other], one);
  }
  /// Everybody fits where it is.
  bool isPossible() const;
  void restore(const std::vector<std::size_t>& slotOfNode);
  const std::vector<std::size_t>& slotOfNode() const { return slotOf_; }

  PlacementCost cost() const;
  double slowBytes() const;
  /// As in NodePermutation.
  double atLeastSeconds() const;

 private:
  struct Between {
    double data = 0, pipeline = 0, tensor = 0;  ///< bytes an iteration
  };
  struct SlowRank {
    std::size_t node = 0, index = 0;  ///< which of the node's ranks
    double timesAsLong = 1;
  };
  struct SlowLink {
    std::size_t from = 0, to = 0;
    double timesAsLong = 1;
  };
  void addTraffic();
  double replicaSeconds(std::span<const double> timesAsLong) const;
  Between between(std::size_t from, std::size_t to) const;

  const PlacementFacts& facts_;
  std::vector<int> names_;
  std::vector<std::vector<Rank>> places_;  ///< by slot
  std::vector<std::size_t> slotOf_, nodeIn_, marked_;
  std::size_t stragglers_ = 0;
  int moves_ = 0;
  std::vector<SlowRank> slowRanks_;
  std::vector<SlowLink> slowLinks_;
  std::map<std::pair<std::size_t, std::size_t>, Between> traffic_;  ///< by slots
  std::vector<double> stageSeconds_;
  double healthySeconds_ = 0;
};

}  // namespace falcon::rebalance
