#include "topology/edge_colouring.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

namespace falcon::topology {
namespace {

template <typename Value>
Value& grownTo(std::vector<Value>& values, std::size_t index) {
  if (values.size() <= index) values.resize(index + 1);
  return values[index];
}

/// A rank or a resource: who uses it, and how often it is used in each wave.
struct Shared {
  std::vector<std::size_t> links;
  std::vector<int> uses;  ///< by wave
  int usesIn(std::size_t wave) const { return wave < uses.size() ? uses[wave] : 0; }
};

/// The waves while they are filled. After each link only those that share a rank or a full resource with it are looked
/// at again.
class Colouring {
 public:
  Colouring(std::span<const Link> links, std::span<const int> resourceOfRank, int capacity)
      : links_(links), resourceOfRank_(resourceOfRank), capacity_(capacity), states_(links.size()) {
    for (std::size_t i = 0; i < links.size(); ++i) {
      const auto [from, to] = resourcesOf(i);
      for (const Rank rank : {links[i].from, links[i].to})
        grownTo(ranks_, static_cast<std::size_t>(rank)).links.push_back(i);
      grownTo(resources_, from).links.push_back(i);
      if (to != from) grownTo(resources_, to).links.push_back(i);
    }
    for (std::size_t i = 0; i < links.size(); ++i) {
      for (const Rank rank : {links[i].from, links[i].to})
        states_[i].degree += ranks_[static_cast<std::size_t>(rank)].links.size();
      queue(i);
    }
  }

  std::vector<Wave> run() {
    while (!queue_.empty()) {
      const auto [closed, degree, negativeIndex] = queue_.top();
      queue_.pop();
      const auto link = static_cast<std::size_t>(-negativeIndex);
      if (states_[link].placed || states_[link].closedCount != closed) continue;  // queued again since
      place(link);
    }
    for (Wave& wave : waves_) std::sort(wave.begin(), wave.end());
    return std::move(waves_);
  }

 private:
  struct State {
    bool placed = false;
    std::size_t degree = 0;    ///< links at its ranks
    std::vector<bool> closed;  ///< by wave: it no longer takes this link
    int closedCount = 0;       ///< DSATUR's saturation
  };

  std::pair<std::size_t, std::size_t> resourcesOf(std::size_t link) const {
    const auto resource = [&](Rank rank) {
      const auto index = static_cast<std::size_t>(rank);
      return resourceOfRank_.empty() ? index : static_cast<std::size_t>(resourceOfRank_[index]);
    };
    return {resource(links_[link].from), resource(links_[link].to)};
  }

  void queue(std::size_t link) {
    queue_.emplace(states_[link].closedCount, states_[link].degree, -static_cast<std::ptrdiff_t>(link));
  }

  void place(std::size_t link) {
    State& state = states_[link];
    std::size_t wave = 0;
    while (wave < state.closed.size() && state.closed[wave]) ++wave;
    grownTo(waves_, wave).push_back(link);
    state.placed = true;
    const auto [from, to] = resourcesOf(link);
    for (const Rank rank : {links_[link].from, links_[link].to}) {
      Shared& end = ranks_[static_cast<std::size_t>(rank)];
      ++grownTo(end.uses, wave);
      lookAgain(end, wave);
    }
    for (const std::size_t resource : {from, to}) ++grownTo(resources_[resource].uses, wave);
    // Until one use is left, a resource closes the wave to nobody.
    for (const std::size_t resource : {from, to})
      if (resources_[resource].usesIn(wave) + 1 >= capacity_) lookAgain(resources_[resource], wave);
  }

  void lookAgain(Shared& shared, std::size_t wave) {
    std::erase_if(shared.links, [&](std::size_t link) { return states_[link].placed; });
    for (const std::size_t link : shared.links) {
      State& state = states_[link];
      if ((wave < state.closed.size() && state.closed[wave]) || admits(link, wave)) continue;
      if (state.closed.size() <= wave) state.closed.resize(wave + 1);
      state.closed[wave] = true;
      ++state.closedCount;
      queue(link);
    }
  }

  bool admits(std::size_t link, std::size_t wave) const {
    for (const Rank rank : {links_[link].from, links_[link].to})
      if (ranks_[static_cast<std::size_t>(rank)].usesIn(wave) > 0) return false;
    const auto [from, to] = resourcesOf(link);
    const int used = resources_[from].usesIn(wave);
    if (from == to) return used == 0 || used + 2 <= capacity_;
    return used < capacity_ && resources_[to].usesIn(wave) < capacity_;
  }

  const std::span<const Link> links_;
  const std::span<const int> resourceOfRank_;
  const int capacity_;
  std::vector<State> states_;
  std::vector<Shared> ranks_;
  std::vector<Shared> resources_;
  std::vector<Wave> waves_;
  /// (saturation, degree, -index), the largest first. What has changed since is queued again.
  std::priority_queue<std::tuple<int, std::size_t, std::ptrdiff_t>> queue_;
};

}  // namespace

std::vector<Wave> linkWaves(std::span<const Link> links, std::span<const int> resourceOfRank, int capacity) {
  return Colouring(links, resourceOfRank, capacity).run();
}

}  // namespace falcon::topology
