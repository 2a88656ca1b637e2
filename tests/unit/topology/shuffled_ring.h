// Rings and helpers the tests of this folder share.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "base/types.h"

namespace falcon::topology {

/// The ranks 0 ... size-1 in an order that depends on size and seed only.
inline std::vector<Rank> shuffledRing(int size, unsigned seed = 1) {
  std::vector<Rank> ring(static_cast<size_t>(size));
  std::iota(ring.begin(), ring.end(), 0);
  std::mt19937 random(seed * 7919u + static_cast<unsigned>(size));
  std::shuffle(ring.begin(), ring.end(), random);
  return ring;
}

template <class T>
std::vector<T> sorted(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values;
}

template <class T>
std::vector<T> joined(const std::vector<std::vector<T>>& lists) {
  std::vector<T> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

/// No rank appears twice.
inline bool disjoint(std::span<const Link> links) {
  std::set<Rank> seen;
  for (const Link& link : links)
    if (!seen.insert(link.from).second || !seen.insert(link.to).second) return false;
  return true;
}

}  // namespace falcon::topology
