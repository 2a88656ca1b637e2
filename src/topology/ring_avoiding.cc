#include "topology/ring_avoiding.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

namespace falcon::topology {
namespace {

constexpr std::size_t exactSize = 12;

/// What a link costs, by place in the old ring. Slow links outweigh everything, links between nodes outweigh changes.
class Costs {
 public:
  static constexpr long slowCost = 1'000'000'000'000;
  static constexpr long crossingCost = 1'000'000;

  Costs(std::span<const Rank> ring, std::span<const Link> slow, std::span<const int> nodeOfRank)
      : ring_(ring), nodeOfRank_(nodeOfRank), slow_(slow.begin(), slow.end()) {}

  long operator()(std::size_t from, std::size_t to) const {
    long cost = (from + 1) % ring_.size() == to ? 0 : 1;
    if (slow_.contains({ring_[from], ring_[to]})) cost += slowCost;
    if (!nodeOfRank_.empty() && node(from) != node(to)) cost += crossingCost;
    return cost;
  }

 private:
  int node(std::size_t place) const { return nodeOfRank_[static_cast<std::size_t>(ring_[place])]; }
  std::span<const Rank> ring_;
  std::span<const int> nodeOfRank_;
  std::set<Link> slow_;
};

using Order = std::vector<std::size_t>;  // places in the old ring

long costOf(const Order& order, const Costs& costs) {
  long total = 0;
  for (std::size_t i = 0; i < order.size(); ++i) total += costs(order[i], order[(i + 1) % order.size()]);
  return total;
}

/// The cheapest ring (Held and Karp, 1962): best[set][last] over sets of visited places, place 0 left out.
Order cheapestRing(std::size_t size, const Costs& costs) {
  const std::size_t others = size - 1, sets = std::size_t{1} << others;
  constexpr long unreached = std::numeric_limits<long>::max();
  std::vector<long> best(sets * others, unreached);
  std::vector<std::size_t> previous(sets * others, 0);
  for (std::size_t last = 0; last < others; ++last) best[(std::size_t{1} << last) * others + last] = costs(0, last + 1);
  for (std::size_t set = 1; set < sets; ++set) {
    for (std::size_t last = 0; last < others; ++last) {
      const long here = best[set * others + last];
      if (here == unreached) continue;
      for (std::size_t next = 0; next < others; ++next) {
        if (set >> next & 1) continue;
        const std::size_t there = (set | std::size_t{1} << next) * others + next;
        const long cost = here + costs(last + 1, next + 1);
        if (cost >= best[there]) continue;
        best[there] = cost;
        previous[there] = last;
      }
    }
  }
  std::size_t set = sets - 1, last = 0;
  long cheapest = unreached;
  for (std::size_t end = 0; end < others; ++end) {
    const long cost = best[set * others + end] + costs(end + 1, 0);
    if (cost < cheapest) cheapest = cost, last = end;
  }
  Order order;
  for (std::size_t left = others; left > 0; --left) {
    order.push_back(last + 1);
    const std::size_t before = previous[set * others + last];
    set ^= std::size_t{1} << last;
    last = before;
  }
  order.push_back(0);
  std::reverse(order.begin(), order.end());
  return order;
}

/// Exchanges two neighbouring segments: the smallest change of a directed ring. Takes the best move that cuts one of
/// the ring's slow links, until none is left or no move helps.
bool moveSegments(Order& order, const Costs& costs) {
  const std::size_t size = order.size();
  for (;;) {
    std::size_t slowAt = 0;
    while (slowAt < size && costs(order[slowAt], order[(slowAt + 1) % size]) < Costs::slowCost) ++slowAt;
    if (slowAt == size) return true;
    // The slow link becomes the closing one; the segments are [0, middle) and [middle, end), the rest stays.
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>((slowAt + 1) % size), order.end());
    const long closing = costs(order[size - 1], order[0]);
    long bestGain = 0;
    std::size_t bestMiddle = 0, bestEnd = 0;
    for (std::size_t middle = 1; middle < size; ++middle) {
      for (std::size_t end = middle + 1; end < size; ++end) {
        const long before = closing + costs(order[middle - 1], order[middle]) + costs(order[end - 1], order[end]);
        const long after = costs(order[size - 1], order[middle]) + costs(order[end - 1], order[0]) +
                           costs(order[middle - 1], order[end]);
        if (before - after > bestGain) bestGain = before - after, bestMiddle = middle, bestEnd = end;
      }
    }
    if (bestGain < Costs::slowCost / 2) return false;
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(bestMiddle),
                order.begin() + static_cast<std::ptrdiff_t>(bestEnd));
  }
}

}  // namespace

std::optional<std::vector<Rank>> ringAvoiding(std::span<const Rank> ring, std::span<const Link> slow,
                                              std::span<const int> nodeOfRank) {
  const std::size_t size = ring.size();
  const Costs costs(ring, slow, nodeOfRank);
  Order order(size);
  std::iota(order.begin(), order.end(), 0);
  if (size < 2 || costOf(order, costs) < Costs::slowCost) return std::vector<Rank>(ring.begin(), ring.end());
  if (size == 2) return std::nullopt;
  if (size <= exactSize) {
    order = cheapestRing(size, costs);
    if (costOf(order, costs) >= Costs::slowCost) return std::nullopt;
  } else {
    if (!moveSegments(order, costs)) return std::nullopt;
    std::rotate(order.begin(), std::find(order.begin(), order.end(), 0u), order.end());
  }
  std::vector<Rank> result;
  result.reserve(size);
  for (const std::size_t place : order) result.push_back(ring[place]);
  return result;
}

}  // namespace falcon::topology
