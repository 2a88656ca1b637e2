// The calls that are measured, alike for every library: float32, sum, root 0; out of place, but for Broadcast, which is
// in place because MPI has no other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace falcon::bench {

enum class Collective {
  allReduce,
  allGather,
  reduceScatter,
  broadcast,
  reduce,
  sendReceive,  ///< every rank sends to the next one and receives from the one before, as one call
  allToAll,
  gather,
  scatter
};

struct CollectiveName {
  Collective collective;
  std::string_view name;
};
inline constexpr std::array<CollectiveName, 9> collectiveNames{{{Collective::allReduce, "all_reduce"},
                                                                {Collective::allGather, "all_gather"},
                                                                {Collective::reduceScatter, "reduce_scatter"},
                                                                {Collective::broadcast, "broadcast"},
                                                                {Collective::reduce, "reduce"},
                                                                {Collective::sendReceive, "sendrecv"},
                                                                {Collective::allToAll, "alltoall"},
                                                                {Collective::gather, "gather"},
                                                                {Collective::scatter, "scatter"}}};

inline std::optional<Collective> findCollective(std::string_view name) {
  for (const CollectiveName& row : collectiveNames)
    if (row.name == name) return row.collective;
  return std::nullopt;
}

/// Elements, of which `block` goes to or comes from one rank where the call has blocks.
struct Shape {
  std::size_t block = 0;
  std::size_t send = 0;
  std::size_t receive = 0;
};

/// As in nccl-tests `bytes` is the larger of a rank's two buffers; a block has one element at least, so that 8 bytes
/// among 8 ranks are 32.
inline Shape shapeOf(Collective collective, std::size_t bytes, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t whole = std::max<std::size_t>(1, bytes / sizeof(float));
  const std::size_t block = std::max<std::size_t>(1, whole / n);
  switch (collective) {
    case Collective::allGather:
    case Collective::gather:
      return {block, block, block * n};
    case Collective::reduceScatter:
    case Collective::scatter:
      return {block, block * n, block};
    case Collective::allToAll:
      return {block, block * n, block * n};
    default:
      return {whole, whole, whole};
  }
}

/// What `rank` sends as element `index`: small whole numbers, so that sums are exact.
inline float valueOf(int rank, std::size_t index) {
  return static_cast<float>((static_cast<std::size_t>(rank) * 5 + index) & 7);
}

/// What `rank` must receive as element `index`.
inline float expectedOf(Collective collective, const Shape& shape, int rank, int ranks, std::size_t index) {
  const auto sum = [&](std::size_t of) {
    float total = 0;
    for (int one = 0; one < ranks; ++one) total += valueOf(one, of);
    return total;
  };
  const std::size_t mine = static_cast<std::size_t>(rank) * shape.block;
  switch (collective) {
    case Collective::allReduce:
    case Collective::reduce:
      return sum(index);
    case Collective::reduceScatter:
      return sum(mine + index);
    case Collective::allGather:
    case Collective::gather:
      return valueOf(static_cast<int>(index / shape.block), index % shape.block);
    case Collective::broadcast:
      return valueOf(0, index);
    case Collective::sendReceive:
      return valueOf((rank + ranks - 1) % ranks, index);
    case Collective::allToAll:
      return valueOf(static_cast<int>(index / shape.block), mine + index % shape.block);
    case Collective::scatter:
      return valueOf(0, mine + index);
  }
  return 0;
}

inline bool onlyRootReceives(Collective collective) {
  return collective == Collective::reduce || collective == Collective::gather;
}

}  // namespace falcon::bench
