// Counts as messages carry them.
#pragma once

#include <vector>

#include "control/drain.h"
#include "control/messages.h"

namespace falcon::control {

inline std::vector<DrainCount> toWire(const Counts& counts) {
  std::vector<DrainCount> list;
  list.reserve(counts.size());
  for (const auto& [key, count] : counts) list.push_back({key.communicator, key.from, key.to, count});
  return list;
}

inline Counts fromWire(const std::vector<DrainCount>& list) {
  Counts counts;
  for (const DrainCount& each : list) counts[{each.communicator, each.from, each.to}] = each.count;
  return counts;
}

}  // namespace falcon::control
