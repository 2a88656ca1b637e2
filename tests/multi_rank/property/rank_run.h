// One rank's part in a world: makes the calls, compares the results.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "call_spec.h"

namespace falcon::property {

inline constexpr int mostLanes = 3;

/// Memory that the ranks of a world and the test share; zeroes at first.
struct Common {
  ncclUniqueId id;
  std::atomic<int> idReady;
  std::atomic<int> failed;  ///< somebody has found something: all stop where they are
  char failure[4096];
  std::atomic<int> reached[mostLanes][16];  ///< group that a rank is in
  static constexpr int digestCount = 16'384;
  /// Of what AllReduce gave, by group; the two halves of the last lane apart. 0: none yet.
  std::atomic<std::uint64_t> digests[mostLanes][2][digestCount];

  /// The first one counts.
  void fail(const std::string& what);
};

/// The groups that a lane's communicator of `ranks` runs; the same on all of them.
using GroupSource = std::function<std::vector<Group>(int lane, int ranks)>;

/// Joins, runs all lanes, leaves. What is wrong is said in `common`.
void runRank(const World& world, int rank, Common& common, const GroupSource& groups);

}  // namespace falcon::property
