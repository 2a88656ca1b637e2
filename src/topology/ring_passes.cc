#include "topology/ring_passes.h"

namespace falcon::topology {

std::vector<Pass> ringPasses(std::span<const Rank> ring) {
  const size_t size = ring.size();
  if (size < 2) return {};
  std::vector<Pass> passes(size % 2 == 0 ? 2 : 3);
  for (size_t i = 0; i < size; ++i) {
    const bool closesOddRing = size % 2 == 1 && i == size - 1;
    passes[closesOddRing ? 2 : i % 2].push_back({ring[i], ring[(i + 1) % size]});
  }
  return passes;
}

}  // namespace falcon::topology
