#include "control/memory_watch.h"

#include <algorithm>
#include <utility>

namespace falcon::control {
namespace {

constexpr Nanoseconds memoryInterval = 5s;
constexpr std::uint64_t toldPart = 16;

}  // namespace

std::optional<MemoryKnown> MemoryWatch::look(Nanoseconds now) {
  if (readAt_ && now - *readAt_ < memoryInterval) return std::nullopt;
  readAt_ = now;
  const std::vector<MemoryPool> pools = read_();
  if (isAsSaid(pools)) return std::nullopt;
  MemoryKnown known;
  for (const MemoryPool& pool : pools) known.parts.push_back({pool.name, pool.bytesLeft});
  return said_ = std::move(known);
}

bool MemoryWatch::isAsSaid(const std::vector<MemoryPool>& pools) const {
  if (!said_) return pools.empty();
  if (pools.size() != said_->parts.size()) return false;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const MemoryPart& said = said_->parts[i];
    const std::uint64_t most = std::max(said.bytesLeft, pools[i].bytesLeft);
    if (said.pool != pools[i].name || most - std::min(said.bytesLeft, pools[i].bytesLeft) > most / toldPart)
      return false;
  }
  return true;
}

}  // namespace falcon::control
