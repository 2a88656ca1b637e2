// One call that all ranks of a communicator make, or one message between two of them.
#pragma once

#include <string>
#include <vector>

#include "nccl.h"
#include "world.h"

namespace falcon::property {

enum class What { allReduce, reduce, reduceScatter, allGather, broadcast, allToAll, gather, scatter, message };
inline constexpr int collectiveCount = 8;

/// What the inputs look like.
enum class Style {
  any,      ///< all bits of integers; floats of many magnitudes
  exact,    ///< small whole numbers: every partial sum is exact
  extremes  ///< the largest and smallest integers; floats with infinities and NaN among them
};

/// The preMulSum stands beside ncclSum .. ncclAvg.
inline constexpr int preMulSum = 5;
inline constexpr int reductionCount = 6;

struct CallSpec {
  What what = What::allReduce;
  ncclDataType_t type = ncclFloat;
  int reduction = 0;  ///< 0 for what reduces nothing
  std::size_t count = 0;
  int root = 0;  ///< of a message: the receiver
  int from = 0;  ///< of a message: the sender
  bool inPlace = false;
  Style style = Style::any;
  int sendOffset = 0, receiveOffset = 0;  ///< elements between a multiple of 64 bytes and the buffer
  std::uint64_t seed = 0;                 ///< of the inputs
};

bool reduces(What what);
bool hasRoot(What what);
/// Elements of the buffers that rank `rank` brings; 0 for one that is not used there.
std::size_t sendElements(const CallSpec& call, int rank, int ranks);
std::size_t receiveElements(const CallSpec& call, int rank, int ranks);
std::string textOf(const CallSpec& call);

/// Calls that ranks make in one group, or a single one outside of any.
using Group = std::vector<CallSpec>;

/// Random calls for a communicator of `ranks`.
Group drawGroup(Choices& choices, const World& world, int ranks);
/// Every collective, type and reduction with counts around every edge of the world's chunks, in groups of one.
std::vector<Group> allGroups(const World& world);

}  // namespace falcon::property
