// The algorithms: pure functions that write down one round's steps. A round is bounded, so that a call of any size
// needs little memory; rounds follow each other without a pause.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/geometry.h"
#include "collectives/step.h"

namespace falcon::collectives {

struct Algorithm {
  const char* name;
  transport::Lane lane;
  /// Elements of a channel's share that one round covers, the last one perhaps less.
  std::size_t (*elementsPerRound)(const Geometry& geometry);
  /// Appends this rank's steps for `round`, elements of the channel's share. For one rank alone: a copy.
  void (*appendRound)(const Geometry& geometry, Range round, std::vector<Step>& steps);
  /// Elements of scratch that a round of so many needs; null: none.
  std::size_t (*scratch)(const Geometry& geometry, std::size_t round) = nullptr;
};

/// Algorithm::elementsPerRound of those whose steps carry all of the round.
inline std::size_t oneChunk(const Geometry& geometry) {
  return geometry.chunk;
}

/// Of those whose steps carry it of all blocks: what a rank keeps of a round is bounded.
inline std::size_t chunkOfAllBlocks(const Geometry& geometry) {
  return std::max<std::size_t>(1, geometry.chunk / geometry.size);
}

/// Reduce-scatter, then all-gather, around the ring: 2 (n - 1) / n of the bytes pass each link.
extern const Algorithm ringAllReduce;
/// Shares are parts of one rank's block.
extern const Algorithm ringAllGather;
extern const Algorithm ringReduceScatter;
/// A chain along the ring, from the root or to it.
extern const Algorithm ringBroadcast;
extern const Algorithm ringReduce;
/// Up and down a binary tree over the ranks; even channels use the first tree, odd ones the second.
extern const Algorithm treeAllReduce;
/// For little: few hops instead of little over each link. Star: all send to one rank, which sends the result to all.
/// Exchange: everyone turns to all others. Doubling: what a rank has or has reduced doubles with each hop.
extern const Algorithm starAllReduce;
extern const Algorithm doublingAllReduce;
extern const Algorithm exchangeAllReduce;
extern const Algorithm starAllGather;
extern const Algorithm doublingAllGather;
extern const Algorithm exchangeAllGather;
extern const Algorithm exchangeReduceScatter;
extern const Algorithm starReduce;
extern const Algorithm starReduceScatter;
extern const Algorithm starAllToAll;
/// Who has blocks of several ranks hands the farther half of them on.
extern const Algorithm binomialScatter;
/// Point to point; the peer is `Geometry::root`.
extern const Algorithm sendMessage;
extern const Algorithm receiveMessage;
/// Input to output, inside this rank.
extern const Algorithm localCopy;

/// One rank's part in a call on one channel: the algorithm's rounds, made when they are needed.
class RoundSource {
 public:
  /// `share`: the elements of this channel. The geometry's ring outlives the source.
  RoundSource(const Algorithm& algorithm, const Geometry& geometry, Range share)
      : algorithm_(&algorithm), geometry_(geometry), rest_(share) {}

  const Geometry& geometry() const { return geometry_; }
  transport::Lane lane() const { return algorithm_->lane; }
  /// Elements, for every round.
  std::size_t scratch() const {
    if (!algorithm_->scratch) return 0;
    return algorithm_->scratch(geometry_, std::min(rest_.size(), algorithm_->elementsPerRound(geometry_)));
  }

  bool finished() const { return rest_.empty(); }
  /// Replaces `program`'s steps by the next round's; false when there are no more.
  bool next(Program& program) {
    program.channel = geometry_.channel;
    program.lane = algorithm_->lane;
    program.steps.clear();
    while (program.steps.empty() && !rest_.empty()) {
      const Range round{rest_.begin, rest_.begin + std::min(rest_.size(), algorithm_->elementsPerRound(geometry_))};
      rest_.begin = round.end;
      algorithm_->appendRound(geometry_, round, program.steps);
    }
    return !program.steps.empty();
  }

 private:
  const Algorithm* algorithm_;
  Geometry geometry_;
  Range rest_;
};

}  // namespace falcon::collectives
