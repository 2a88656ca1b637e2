#include "rebalance/placement.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "topology/ring_order.h"

namespace falcon::rebalance {

bool isBetter(const PlacementCost& one, const PlacementCost& other) {
  const auto differ = [](double a, double b) { return std::abs(a - b) > 1e-9 * std::max(std::abs(a), std::abs(b)); };
  if (differ(one.seconds, other.seconds)) return one.seconds < other.seconds;
  if (differ(one.slowLinkSeconds, other.slowLinkSeconds)) return one.slowLinkSeconds < other.slowLinkSeconds;
  if (one.slowStages != other.slowStages) return one.slowStages < other.slowStages;
  if (one.outerStages != other.outerStages) return one.outerStages < other.outerStages;
  return one.moves < other.moves;
}

Placement::Placement(const PlacementFacts& facts) : facts_(facts) {
  std::map<int, std::vector<Rank>> placesOf;
  for (std::size_t place = 0; place < facts.nodeOfPlace.size(); ++place)
    placesOf[facts.nodeOfPlace[place]].push_back(static_cast<Rank>(place));
  std::map<int, std::size_t> indexOf;
  for (auto& [node, places] : placesOf) {
    indexOf[node] = names_.size();
    for (std::size_t i = 0; i < places.size() && !facts.timesAsLong.empty(); ++i)
      if (const double times = facts.timesAsLong[static_cast<std::size_t>(places[i])]; times > 1)
        slowRanks_.push_back({names_.size(), i, times});
    slotOf_.push_back(names_.size());
    names_.push_back(node);
    places_.push_back(std::move(places));
  }
  nodeIn_ = slotOf_;
  for (const SlowNodeLink& link : facts.slowLinks)
    slowLinks_.push_back({indexOf.at(link.from), indexOf.at(link.to), link.timesAsLong});
  const auto mark = [&](std::size_t node) {
    if (std::find(marked_.begin(), marked_.end(), node) == marked_.end()) marked_.push_back(node);
  };
  for (const SlowRank& rank : slowRanks_) mark(rank.node);
  stragglers_ = marked_.size();
  for (const SlowLink& link : slowLinks_) mark(link.from), mark(link.to);
  stageSeconds_ = facts.stageSeconds;
  if (stageSeconds_.empty()) stageSeconds_.assign(static_cast<std::size_t>(facts.layout.pipelineSize), 1);
  healthySeconds_ = replicaSeconds(std::vector<double>(stageSeconds_.size(), 1));
  addTraffic();
}

void Placement::addTraffic() {
  std::vector<std::size_t> slotAt(facts_.nodeOfPlace.size());
  for (std::size_t slot = 0; slot < places_.size(); ++slot)
    for (const Rank place : places_[slot]) slotAt[static_cast<std::size_t>(place)] = slot;
  const auto add = [&](Rank from, Rank to, double Between::*kind, double bytes) {
    const std::size_t one = slotAt[static_cast<std::size_t>(from)], other = slotAt[static_cast<std::size_t>(to)];
    if (one != other && bytes > 0) traffic_[{one, other}].*kind += bytes;
  };
  const topology::Layout& layout = facts_.layout;
  const auto addRing = [&](const std::vector<Rank>& group, double Between::*kind, double bytes) {
    for (const Link& link : topology::ringLinks(group)) add(link.from, link.to, kind, bytes);
  };
  for (Rank place = 0; place < layout.size(); ++place) {
    const auto at = layout.coordinatesOf(place);
    if (at.data == 0) addRing(layout.dataGroup(place), &Between::data, facts_.volumes.data);
    if (at.tensor == 0) addRing(layout.tensorGroup(place), &Between::tensor, facts_.volumes.tensor);
    if (at.pipeline + 1 == layout.pipelineSize) continue;
    // Activations go forward, gradients of the same size back.
    const Rank next = layout.rankAt({at.data, at.pipeline + 1, at.tensor});
    add(place, next, &Between::pipeline, facts_.volumes.pipeline);
    add(next, place, &Between::pipeline, facts_.volumes.pipeline);
  }
}

int Placement::stageOf(std::size_t slot) const {
  return facts_.layout.coordinatesOf(places_[slot].front()).pipeline;
}

int Placement::replicaOf(std::size_t slot) const {
  return facts_.layout.coordinatesOf(places_[slot].front()).data;
}

bool Placement::fits(std::size_t node, std::size_t slot) const {
  // A slot is named by who holds it now: those are the node's own places. Who stays needs nothing.
  if (node == slot) return true;
  const std::vector<Rank>&own = places_[node], &others = places_[slot];
  if (own.size() != others.size()) return false;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto mine = static_cast<std::size_t>(own[i]), its = static_cast<std::size_t>(others[i]);
    if (!facts_.railOfPlace.empty() && facts_.railOfPlace[mine] != facts_.railOfPlace[its]) return false;
    if (!facts_.memoryOfRank.empty() && facts_.memoryOfRank[mine] < facts_.memoryOfPlace[its]) return false;
  }
  return true;
}

bool Placement::isPossible() const {
  for (std::size_t node = 0; node < slotOf_.size(); ++node)
    if (slotOf_[node] != node && !fits(node, slotOf_[node])) return false;
  return true;
}

void Placement::exchange(std::size_t one, std::size_t other) {
  const std::size_t first = nodeIn_[one], second = nodeIn_[other];
  moves_ -= (first != one) + (second != other);
  std::swap(nodeIn_[one], nodeIn_[other]);
  std::swap(slotOf_[first], slotOf_[second]);
  moves_ += (first != other) + (second != one);
}

void Placement::restore(const std::vector<std::size_t>& slotOfNode) {
  slotOf_ = slotOfNode;
  moves_ = 0;
  for (std::size_t node = 0; node < slotOf_.size(); ++node) {
    nodeIn_[slotOf_[node]] = node;
    moves_ += slotOf_[node] != node;
  }
}

double Placement::replicaSeconds(std::span<const double> timesAsLong) const {
  double sum = 0, slowest = 0;
  for (std::size_t stage = 0; stage < timesAsLong.size(); ++stage) {
    const double seconds = stageSeconds_[stage] * timesAsLong[stage];
    sum += seconds;
    slowest = std::max(slowest, seconds);
  }
  return sum + (facts_.microBatches - 1) * slowest;
}

Placement::Between Placement::between(std::size_t from, std::size_t to) const {
  const auto found = traffic_.find({from, to});
  return found == traffic_.end() ? Between{} : found->second;
}

PlacementCost Placement::cost() const {
  PlacementCost cost;
  std::map<int, std::vector<double>> replicas;  // only those with a slow rank
  std::vector<bool> slowStage(stageSeconds_.size());
  for (const SlowRank& rank : slowRanks_) {
    const auto at = facts_.layout.coordinatesOf(places_[slotOf_[rank.node]][rank.index]);
    auto& times = replicas.try_emplace(at.data, stageSeconds_.size(), 1.0).first->second;
    double& stage = times[static_cast<std::size_t>(at.pipeline)];
    stage = std::max(stage, rank.timesAsLong);
    slowStage[static_cast<std::size_t>(at.pipeline)] = true;
  }
  cost.seconds = healthySeconds_;
  for (const auto& [replica, times] : replicas) cost.seconds = std::max(cost.seconds, replicaSeconds(times));
  cost.slowStages = static_cast<int>(std::count(slowStage.begin(), slowStage.end(), true));
  cost.outerStages = slowStage.front() + (slowStage.size() > 1 && slowStage.back());

  Between added;
  for (const SlowLink& link : slowLinks_) {
    const Between bytes = between(slotOf_[link.from], slotOf_[link.to]);
    const double each = (link.timesAsLong - 1) / facts_.linkBytesPerSecond;
    added.data = std::max(added.data, each * bytes.data);
    added.pipeline = std::max(added.pipeline, each * bytes.pipeline);
    added.tensor = std::max(added.tensor, each * bytes.tensor);
    cost.slowLinkSeconds += each * (bytes.data + bytes.pipeline + bytes.tensor);
  }
  cost.seconds += added.data + added.pipeline + added.tensor;
  cost.moves = moves_;
  return cost;
}

double Placement::slowBytes() const {
  double all = 0;
  for (const SlowLink& link : slowLinks_) {
    const Between bytes = between(slotOf_[link.from], slotOf_[link.to]);
    all += bytes.data + bytes.pipeline + bytes.tensor;
  }
  return all;
}

double Placement::atLeastSeconds() const {
  double least = healthySeconds_;
  for (const SlowRank& rank : slowRanks_) {
    std::map<int, double> ofStage;
    for (std::size_t slot = 0; slot < places_.size(); ++slot) {
      if (!fits(rank.node, slot)) continue;
      const int stage = facts_.layout.coordinatesOf(places_[slot][rank.index]).pipeline;
      if (ofStage.contains(stage)) continue;
      std::vector<double> times(stageSeconds_.size(), 1);
      times[static_cast<std::size_t>(stage)] = rank.timesAsLong;
      ofStage[stage] = replicaSeconds(times);
    }
    double best = ofStage.begin()->second;
    for (const auto& [stage, seconds] : ofStage) best = std::min(best, seconds);
    least = std::max(least, best);
  }
  return least;
}

}  // namespace falcon::rebalance
