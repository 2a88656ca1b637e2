// Collectives inside a node without connections: each rank publishes its input, and the others read what they need.
// The algorithms are pure functions that say step by step what a rank reads; one interpreter (DirectRunner) runs them.
#pragma once

#include <cstddef>

#include "collectives/geometry.h"
#include "transport/node_board.h"

namespace falcon::collectives {

/// What an algorithm must know of a call. Sizes in elements.
struct DirectShape {
  Rank rank = 0;
  int size = 1;
  Rank root = -1;
  std::size_t count = 0;  ///< as in Call
  std::size_t grain = 1;  ///< see partOf()
};

/// One piece of work. Offsets and counts in elements.
struct DirectStep {
  enum class Kind : std::uint8_t {
    copy,   ///< what `peer` has at `source` (this rank itself too)
    reduce  ///< what all ranks have at `source`, reduced in the order of ranks
  };
  Kind kind = Kind::copy;
  Rank peer = -1;
  /// copy: what the peer must have reached; `posted`: its input is read, `output`: its output.
  transport::NodeBoard::Stage from = transport::NodeBoard::Stage::posted;
  bool publish = false;  ///< afterwards the others may read this rank's output
  std::size_t source = 0;
  std::size_t destination = 0;  ///< in the output
  std::size_t count = 0;
};

/// Who reads what a rank posts. A rank does not return before they have.
enum class Readers : std::uint8_t { nobody, root, everyone };

/// What the others have to do with a rank's output.
enum class Output : std::uint8_t {
  own,     ///< nothing
  shared,  ///< they read it once it is published
  late     ///< in place, it lies where they read the input: it is kept aside until they have
};

/// In place works with all of them: a rank writes into its output only what nobody reads from it as input any more.
struct DirectAlgorithm {
  const char* name;
  /// Elements of its input that this rank posts.
  std::size_t (*posts)(const DirectShape& shape);
  /// Elements that the rank that posts most of all posts; whether that fits into a slot decides for all.
  std::size_t (*postsAtMost)(const DirectShape& shape);
  Readers (*readers)(const DirectShape& shape);
  /// What becomes of the output.
  Output output;
  int (*steps)(const DirectShape& shape);
  DirectStep (*step)(const DirectShape& shape, int index);
  /// Who reads copies something from every rank, one after the other, in the order of turnOf(): each of them may go on
  /// as soon as it had its turn.
  bool inTurn = false;
  /// Each element of the result depends on the same element of what is posted, and on nothing else: a call may be run
  /// part by part, each as if it were a call.
  bool divisible = false;
};

/// Beginning with the reader itself and its neighbours, so that not all ranks read from rank 0 first.
inline int turnOf(Rank peer, Rank reader, int size) {
  return (peer - reader + size) % size;
}

/// What most of them post, let read and take.
inline bool isRoot(const DirectShape& shape) {
  return shape.rank == shape.root;
}
inline std::size_t whole(const DirectShape& shape) {
  return shape.count;
}
inline std::size_t allBlocks(const DirectShape& shape) {
  return shape.size * shape.count;
}
inline Readers everyone(const DirectShape&) {
  return Readers::everyone;
}
inline int one(const DirectShape&) {
  return 1;
}

/// Everyone reduces everything.
extern const DirectAlgorithm directAllReduceFlat;
/// Everyone reduces a segment of its own, then reads the others'.
extern const DirectAlgorithm directAllReduceSegments;
extern const DirectAlgorithm directReduceScatter;
extern const DirectAlgorithm directReduce;
extern const DirectAlgorithm directBroadcast;
extern const DirectAlgorithm directAllGather;
extern const DirectAlgorithm directAllToAll;
extern const DirectAlgorithm directGather;
extern const DirectAlgorithm directScatter;

}  // namespace falcon::collectives
