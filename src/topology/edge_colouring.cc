#include "topology/edge_colouring.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace falcon::topology {
namespace {

/// One wave while it is filled.
class OpenWave {
 public:
  bool admits(Link link, int fromResource, int toResource, int capacity) const {
    if (members_.empty()) return true;
    if (ranks_.contains(link.from) || ranks_.contains(link.to)) return false;
    if (fromResource == toResource) return used(fromResource) + 2 <= capacity;
    return used(fromResource) < capacity && used(toResource) < capacity;
  }
  void add(std::size_t index, Link link, int fromResource, int toResource) {
    members_.push_back(index);
    ranks_.insert({link.from, link.to});
    ++uses_[fromResource];
    ++uses_[toResource];
  }
  Wave take() {
    std::sort(members_.begin(), members_.end());
    return std::move(members_);
  }

 private:
  int used(int resource) const {
    const auto found = uses_.find(resource);
    return found == uses_.end() ? 0 : found->second;
  }
  Wave members_;
  std::set<Rank> ranks_;
  std::map<int, int> uses_;
};

}  // namespace

std::vector<Wave> linkWaves(std::span<const Link> links, std::span<const int> resourceOfRank, int capacity) {
  const auto resource = [&](Rank rank) {
    return resourceOfRank.empty() ? rank : resourceOfRank[static_cast<std::size_t>(rank)];
  };
  std::map<Rank, int> degree;
  for (const Link& link : links) ++degree[link.from], ++degree[link.to];

  std::vector<OpenWave> waves;
  // closed[i][w]: wave w no longer takes link i; how many are closed is DSATUR's saturation.
  std::vector<std::vector<bool>> closed(links.size());
  std::vector<int> closedCount(links.size(), 0);
  std::vector<bool> placed(links.size(), false);
  const auto urgency = [&](std::size_t i) {
    return std::pair(closedCount[i], degree[links[i].from] + degree[links[i].to]);
  };
  for (std::size_t step = 0; step < links.size(); ++step) {
    std::size_t next = links.size();
    for (std::size_t i = 0; i < links.size(); ++i)
      if (!placed[i] && (next == links.size() || urgency(i) > urgency(next))) next = i;

    std::size_t wave = 0;
    while (wave < waves.size() && closed[next][wave]) ++wave;
    if (wave == waves.size()) {
      waves.emplace_back();
      for (auto& each : closed) each.push_back(false);
    }
    waves[wave].add(next, links[next], resource(links[next].from), resource(links[next].to));
    placed[next] = true;
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (placed[i] || closed[i][wave]) continue;
      if (waves[wave].admits(links[i], resource(links[i].from), resource(links[i].to), capacity)) continue;
      closed[i][wave] = true;
      ++closedCount[i];
    }
  }
  std::vector<Wave> result;
  result.reserve(waves.size());
  for (OpenWave& wave : waves) result.push_back(wave.take());
  return result;
}

}  // namespace falcon::topology
