#include "rebalance/node_permutation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "rebalance/placement.h"

namespace falcon::rebalance {
namespace {

// What each part of the search beyond the exact one looks at: keeps all of it below a second.
constexpr std::size_t mostExchanges = 60'000;

Status check(const PlacementFacts& facts) {
  const auto places = static_cast<std::size_t>(facts.layout.size());
  const auto fits = [&](const char* what, std::size_t given, std::size_t wanted, bool mayBeEmpty) -> Status {
    if (given == wanted || (mayBeEmpty && given == 0)) return {};
    return Error::invalidArgument("{} is given for {}, but the layout has {}", what, given, wanted);
  };
  if (places == 0) return Error::invalidArgument("a layout of no place has no nodes to permute");
  for (const Status& each :
       {fits("the node", facts.nodeOfPlace.size(), places, false),
        fits("how slow it is", facts.timesAsLong.size(), places, true),
        fits("the rail", facts.railOfPlace.size(), places, true),
        fits("a rank's memory", facts.memoryOfRank.size(), places, true),
        fits("a place's memory", facts.memoryOfPlace.size(), facts.memoryOfRank.size(), false),
        fits("the time", facts.stageSeconds.size(), static_cast<std::size_t>(facts.layout.pipelineSize), true)})
    if (!each) return each.error();
  if (!(facts.linkBytesPerSecond > 0) || facts.microBatches < 1)
    return Error::invalidArgument("{} B/s over a link and {} micro-batches: both must be positive",
                                  facts.linkBytesPerSecond, facts.microBatches);
  for (const SlowNodeLink& link : facts.slowLinks) {
    const auto known = [&](int node) {
      return std::find(facts.nodeOfPlace.begin(), facts.nodeOfPlace.end(), node) != facts.nodeOfPlace.end();
    };
    if (!known(link.from) || !known(link.to) || link.from == link.to || !(link.timesAsLong >= 1))
      return Error::invalidArgument(
          "a link from node {} to node {} is to be {} times as slow: two nodes of the job, "
          "and 1 or more, are wanted",
          link.from, link.to, link.timesAsLong);
  }
  return {};
}

class Search {
 public:
  Search(const PlacementFacts& facts, std::size_t mostOrders) : placement_(facts), mostOrders_(mostOrders) { keep(); }

  bool canBeExact() const {
    double orders = 1;
    for (std::size_t i = 0; i < placement_.marked().size(); ++i) orders *= static_cast<double>(placement_.size() - i);
    return orders <= static_cast<double>(mostOrders_);
  }

  /// Every way to place the marked nodes, one after the other, by exchanges with whoever is there.
  void lookAtAll(std::size_t next = 0) {
    if (next == placement_.marked().size()) {
      if (placement_.isPossible()) keep();
      return;
    }
    const std::size_t node = placement_.marked()[next], from = placement_.slotOf(node);
    for (std::size_t slot = 0; slot < placement_.size(); ++slot) {
      const bool taken =
          std::find(placement_.marked().begin(), placement_.marked().begin() + static_cast<std::ptrdiff_t>(next),
                    placement_.nodeIn(slot)) != placement_.marked().begin() + static_cast<std::ptrdiff_t>(next);
      if (taken || !placement_.fits(node, slot)) continue;
      if (slot != from) placement_.exchange(from, slot);
      lookAtAll(next + 1);
      if (slot != from) placement_.exchange(slot, from);
    }
  }

  void improve() {
    descend();
    placement_.restore(best_);
    pack();
    freeLinks();
    keep();
    descend();
    placement_.restore(best_);
  }

  NodePermutation result(const PlacementCost& before, double slowBytesBefore, bool exact) {
    placement_.restore(best_);
    NodePermutation result{.before = before,
                           .after = bestCost_,
                           .slowBytesBefore = slowBytesBefore,
                           .slowBytesAfter = placement_.slowBytes(),
                           .atLeastSeconds = placement_.atLeastSeconds(),
                           .exact = exact};
    for (std::size_t node = 0; node < placement_.size(); ++node)
      if (placement_.slotOf(node) != node)
        result.moves.emplace_back(placement_.nameOf(node), placement_.nameOf(placement_.slotOf(node)));
    return result;
  }

  const Placement& placement() const { return placement_; }

 private:
  void keep() {
    const PlacementCost cost = placement_.cost();
    if (!best_.empty() && !isBetter(cost, bestCost_)) return;
    best_ = placement_.slotOfNode();
    bestCost_ = cost;
  }

  /// Slow nodes into as few stages as they fill: those that have the most of them already, interior ones before.
  void pack() {
    const std::size_t stragglers = placement_.stragglers();
    if (stragglers == 0) return;
    std::map<int, std::vector<std::size_t>> slotsOf;
    for (std::size_t slot = 0; slot < placement_.size(); ++slot) slotsOf[placement_.stageOf(slot)].push_back(slot);
    const int last = slotsOf.rbegin()->first;
    std::map<int, int> slowIn;
    for (std::size_t i = 0; i < stragglers; ++i)
      ++slowIn[placement_.stageOf(placement_.slotOf(placement_.marked()[i]))];
    std::vector<int> stages;
    for (const auto& [stage, slots] : slotsOf) stages.push_back(stage);
    std::stable_sort(stages.begin(), stages.end(), [&](int one, int other) {
      const bool oneOuter = one == 0 || one == last, otherOuter = other == 0 || other == last;
      return oneOuter != otherOuter ? otherOuter : slowIn[one] > slowIn[other];
    });
    std::vector<std::size_t> order;
    std::set<std::size_t> chosen;
    for (const int stage : stages)
      for (const std::size_t slot : slotsOf[stage])
        if (order.size() < stragglers) order.push_back(slot), chosen.insert(slot);
    // Who is in a chosen one stays.
    for (std::size_t i = 0; i < stragglers; ++i) {
      const std::size_t node = placement_.marked()[i];
      if (chosen.erase(placement_.slotOf(node)) > 0) continue;
      for (const std::size_t slot : order) {
        if (!chosen.contains(slot) || isSlow(placement_.nodeIn(slot))) continue;
        if (!placement_.canExchange(placement_.slotOf(node), slot)) continue;
        placement_.exchange(placement_.slotOf(node), slot);
        chosen.erase(slot);
        break;
      }
    }
  }

  bool isSlow(std::size_t node) const {
    const auto end = placement_.marked().begin() + static_cast<std::ptrdiff_t>(placement_.stragglers());
    return std::find(placement_.marked().begin(), end, node) != end;
  }

  /// The ends of slow links, one after the other, each to where all slow links together add least.
  void freeLinks() {
    looked_ = 0;
    for (bool helped = true; helped && looked_ < mostExchanges && placement_.slowBytes() > 0;) {
      helped = false;
      for (std::size_t i = placement_.stragglers(); i < placement_.marked().size(); ++i)
        helped = moveBest(placement_.marked()[i], true) || helped;
    }
  }

  /// Single exchanges until none helps.
  void descend() {
    placement_.restore(best_);
    looked_ = 0;
    for (bool helped = true; helped && looked_ < mostExchanges;) {
      helped = false;
      for (const std::size_t node : placement_.marked()) helped = moveBest(node, false) || helped;
      keep();
    }
  }

  /// @param linksFirst  by what slow links add alone; the rest of the cost decides among equals
  bool moveBest(std::size_t node, bool linksFirst) {
    const std::size_t from = placement_.slotOf(node);
    std::size_t target = from;
    PlacementCost least = placement_.cost();
    for (std::size_t slot = 0; slot < placement_.size() && looked_ < mostExchanges; ++slot) {
      if (slot == from || (linksFirst && isSlow(placement_.nodeIn(slot))) || !placement_.canExchange(from, slot))
        continue;
      placement_.exchange(from, slot);
      ++looked_;
      const PlacementCost cost = placement_.cost();
      const bool fewer = linksFirst && cost.slowLinkSeconds < least.slowLinkSeconds * (1 - 1e-9);
      const bool more = linksFirst && least.slowLinkSeconds < cost.slowLinkSeconds * (1 - 1e-9);
      if (fewer || (!more && isBetter(cost, least))) least = cost, target = slot;
      placement_.exchange(slot, from);
    }
    if (target == from) return false;
    placement_.exchange(from, target);
    return true;
  }

  Placement placement_;
  const std::size_t mostOrders_;
  std::vector<std::size_t> best_;
  PlacementCost bestCost_;
  std::size_t looked_ = 0;
};

}  // namespace

TrafficVolumes volumesOf(const ModelShape& model, const topology::Layout& layout) {
  const double pipeline = layout.pipelineSize, tensor = layout.tensorSize;
  const double activations = model.microBatch * model.microBatches * model.context * model.hidden;
  TrafficVolumes volumes;
  volumes.tensor = 8 * activations * model.layers * (tensor - 1) / (pipeline * tensor);
  volumes.data = 12 * model.bytesPerGradient * model.layers * model.hidden * model.hidden / (pipeline * tensor);
  volumes.pipeline = activations;
  return volumes;
}

Result<NodePermutation> permuteNodes(const PlacementFacts& facts, std::size_t mostOrders) {
  if (const Status sound = check(facts); !sound) return sound.error();
  Search search(facts, mostOrders);
  const PlacementCost before = search.placement().cost();
  const double slowBytes = search.placement().slowBytes();
  const bool exact = search.canBeExact();
  if (exact)
    search.lookAtAll();
  else
    search.improve();
  return search.result(before, slowBytes, exact);
}

std::vector<Rank> placesAfter(std::span<const int> nodeOfPlace, const NodePermutation& permutation) {
  std::map<int, std::vector<Rank>> placesOf;
  for (std::size_t place = 0; place < nodeOfPlace.size(); ++place)
    placesOf[nodeOfPlace[place]].push_back(static_cast<Rank>(place));
  std::vector<Rank> after(nodeOfPlace.size());
  for (std::size_t place = 0; place < after.size(); ++place) after[place] = static_cast<Rank>(place);
  for (const auto& [node, other] : permutation.moves)
    for (std::size_t i = 0; i < placesOf[node].size(); ++i)
      after[static_cast<std::size_t>(placesOf[node][i])] = placesOf[other][i];
  return after;
}

}  // namespace falcon::rebalance
