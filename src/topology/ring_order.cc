#include "topology/ring_order.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace falcon::topology {

std::vector<Rank> ringOrder(std::span<const int> nodeOfRank) {
  std::map<int, size_t> firstOfNode;
  for (size_t rank = 0; rank < nodeOfRank.size(); ++rank) firstOfNode.try_emplace(nodeOfRank[rank], rank);
  std::vector<Rank> ring(nodeOfRank.size());
  std::iota(ring.begin(), ring.end(), 0);
  std::stable_sort(ring.begin(), ring.end(), [&](Rank a, Rank b) {
    return firstOfNode[nodeOfRank[static_cast<size_t>(a)]] < firstOfNode[nodeOfRank[static_cast<size_t>(b)]];
  });
  return ring;
}

std::vector<Link> ringLinks(std::span<const Rank> ring) {
  std::vector<Link> links;
  if (ring.size() < 2) return links;
  links.reserve(ring.size());
  for (size_t i = 0; i < ring.size(); ++i) links.push_back({ring[i], ring[(i + 1) % ring.size()]});
  return links;
}

}  // namespace falcon::topology
