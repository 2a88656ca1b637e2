#include "call_spec.h"

#include <algorithm>

#include "algorithms.h"
#include "number.h"

namespace falcon::property {
namespace {

// Every rank computes what all bring: elements that the oracles look at for one call, and for a long one.
constexpr std::size_t usualOracleElements = 400'000, mostOracleElements = 16'000'000;
// Where the library turns to other ways, or ends a piece (bytes).
constexpr std::size_t landmarks[] = {4 << 10,   8 << 10,   32 << 10,  64 << 10, 128 << 10,
                                     192 << 10, 256 << 10, 512 << 10, 1 << 20,  8 << 20};

bool hasBlocks(What what) {
  return what == What::allGather || what == What::reduceScatter || what == What::allToAll || what == What::gather ||
         what == What::scatter;
}

/// A count of elements at, or one beside, an edge: of the chunks, of what a channel or a round of the ring covers, of a
/// connection's buffer.
std::size_t edge(Choices& choices, const World& world, int ranks, int elementBytes) {
  const std::size_t chunk = std::max<std::size_t>(world.chunkBytes() / elementBytes, 1);
  const std::size_t line = 64 / elementBytes;
  const std::size_t units[] = {1, line, chunk, 2 * chunk, 8 * chunk};
  const auto channels = static_cast<std::size_t>(world.channels ? world.channels : 2);
  const auto members = static_cast<std::size_t>(ranks);
  const std::size_t times[] = {1, 1, members, channels, channels * members, 2 * channels * members};
  const std::size_t at = choices.of(units) * choices.of(times);
  return at + choices.below(3) - 1;
}

std::size_t drawCount(Choices& choices, const World& world, int ranks, int elementBytes) {
  const std::size_t kind = choices.below(16);
  if (kind == 0) return choices.below(4);  // none, too
  if (kind < 10) return edge(choices, world, ranks, elementBytes);
  if (kind < 15) return choices.below(5000);
  return choices.of(landmarks) / elementBytes + choices.below(3) - 1;
}

CallSpec drawCall(Choices& choices, const World& world, int ranks, bool message) {
  CallSpec call;
  call.what = message ? What::message : static_cast<What>(choices.below(collectiveCount));
  call.type = static_cast<ncclDataType_t>(choices.below(typeCount));
  if (reduces(call.what)) call.reduction = static_cast<int>(choices.below(reductionCount));
  const int bytes = factsOf(call.type).bytes;
  call.count = drawCount(choices, world, ranks, bytes);
  // Half of the edges are of the whole, the others of a rank's block.
  if (hasBlocks(call.what) && choices.oneIn(2)) call.count /= ranks;
  const std::size_t blocks = hasBlocks(call.what) ? ranks : 1;
  const std::size_t elements = choices.oneIn(64) ? mostOracleElements : usualOracleElements;
  call.count = std::min(call.count, elements / (blocks * ranks * ranks));
  call.root = static_cast<int>(choices.below(ranks));
  call.from = static_cast<int>(choices.below(ranks));
  call.inPlace = choices.oneIn(2) && call.what != What::allToAll && !message;
  call.style = static_cast<Style>(choices.below(3));
  call.sendOffset = static_cast<int>(choices.below(64 / bytes));
  call.receiveOffset = static_cast<int>(choices.below(64 / bytes));
  call.seed = choices.bits();
  return call;
}

/// None, few, and what lies around each edge of the world's chunks: below, at and above it. Of a reduction, whose many
/// ops all do the same with the same type's chunks, one of the three, by `turn`.
std::vector<std::size_t> countsAtEdges(const World& world, const CallSpec& call, std::size_t turn) {
  const auto bytes = static_cast<std::size_t>(factsOf(call.type).bytes);
  const auto ranks = static_cast<std::size_t>(world.ranks), channels = static_cast<std::size_t>(world.channels);
  const std::size_t chunk = std::max<std::size_t>(world.chunkBytes() / bytes, 1), line = 64 / bytes;
  std::vector<std::size_t> counts{0, 1, 2};
  for (const std::size_t at : {ranks, line, ranks * line, channels * line, chunk, 8 * chunk, channels * chunk,
                               ranks * chunk, channels * ranks * chunk, 2 * channels * ranks * chunk})
    for (std::size_t side = 0, chosen = turn++ % 3; side < 3; ++side)
      if (!reduces(call.what) || side == chosen) counts.push_back(at + side - 1);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

}  // namespace

bool reduces(What what) {
  return what == What::allReduce || what == What::reduce || what == What::reduceScatter;
}

bool hasRoot(What what) {
  return what == What::reduce || what == What::broadcast || what == What::gather || what == What::scatter;
}

std::size_t sendElements(const CallSpec& call, int rank, int ranks) {
  switch (call.what) {
    case What::broadcast:
      return rank == call.root ? call.count : 0;
    case What::scatter:
      return rank == call.root ? call.count * ranks : 0;
    case What::reduceScatter:
    case What::allToAll:
      return call.count * ranks;
    case What::message:
      return rank == call.from ? call.count : 0;
    default:
      return call.count;
  }
}

std::size_t receiveElements(const CallSpec& call, int rank, int ranks) {
  switch (call.what) {
    case What::reduce:
      return rank == call.root ? call.count : 0;
    case What::gather:
      return rank == call.root ? call.count * ranks : 0;
    case What::allGather:
    case What::allToAll:
      return call.count * ranks;
    case What::message:
      return rank == call.root ? call.count : 0;
    default:
      return call.count;
  }
}

std::string textOf(const CallSpec& call) {
  constexpr const char* names[] = {"AllReduce", "Reduce", "ReduceScatter", "AllGather", "Broadcast",
                                   "AlltoAll",  "Gather", "Scatter",       "Message"};
  constexpr const char* reductions[] = {"sum", "prod", "max", "min", "avg", "preMulSum"};
  constexpr const char* styles[] = {"any", "exact", "extremes"};
  std::string text = std::string(names[static_cast<int>(call.what)]) + " of " + std::to_string(call.count) + " " +
                     factsOf(call.type).name;
  if (reduces(call.what)) text += std::string(", ") + reductions[call.reduction];
  if (hasRoot(call.what)) text += ", root " + std::to_string(call.root);
  if (call.what == What::message) text += " from " + std::to_string(call.from) + " to " + std::to_string(call.root);
  if (call.inPlace) text += ", in place";
  return text + ", " + styles[static_cast<int>(call.style)] + " values";
}

Group drawGroup(Choices& choices, const World& world, int ranks) {
  const bool alone = !choices.oneIn(4);
  Group group;
  const std::size_t size = alone ? 1 : 2 + choices.below(8);
  for (std::size_t i = 0; i < size; ++i) group.push_back(drawCall(choices, world, ranks, choices.oneIn(alone ? 8 : 2)));
  return group;
}

std::vector<Group> allGroups(const World& world) {
  std::vector<Group> groups;
  const int ranks = world.ranks;
  Choices choices(0, ranks);
  std::size_t turn = 0;
  for (int index = 0; index < collectiveCount; ++index) {
    const What what = static_cast<What>(index);
    // What has no such algorithm takes the library's choice, which has worlds of its own.
    if (!world.algorithm.empty() && !hasAlgorithm(what, world.over, world.algorithm)) continue;
    for (int type = 0; type < typeCount; ++type)
      for (int reduction = 0; reduction < (reduces(what) ? reductionCount : 1); ++reduction) {
        CallSpec call;
        call.what = what;
        call.type = static_cast<ncclDataType_t>(type);
        call.reduction = reduction;
        const std::size_t blocks = hasBlocks(what) ? ranks : 1;
        for (const std::size_t count : countsAtEdges(world, call, turn++)) {
          if (count * blocks * ranks * ranks > mostOracleElements) continue;
          call.count = count;
          call.root = static_cast<int>(choices.below(ranks));
          call.inPlace = choices.oneIn(2) && call.what != What::allToAll;
          call.style = static_cast<Style>(choices.below(3));
          const int line = 64 / factsOf(call.type).bytes;
          call.sendOffset = static_cast<int>(choices.below(line));
          call.receiveOffset = static_cast<int>(choices.below(line));
          call.seed = choices.bits();
          groups.push_back({call});
        }
      }
  }
  return groups;
}

}  // namespace falcon::property
