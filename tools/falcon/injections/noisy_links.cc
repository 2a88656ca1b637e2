#include "injections/noisy_links.h"

#include <stdexcept>
#include <vector>

#include "demo/dice.h"
#include "inject/traffic_limit.h"

namespace falcon::injections {
namespace {

// Fast enough that the gradients take a small part of an iteration, slow enough that the limit decides, not the cores.
constexpr double noisyBitsPerSecond = 400e6;
constexpr double scatter = 0.05;
constexpr double slowShare = 0.1;

struct Direction {
  Link link;
  tools::TrafficLimit limit;
};

std::vector<Direction> ringLinks(const tools::JobDescription& job, const demo::JobShape& shape) {
  std::vector<Direction> directions;
  const auto add = [&](Rank from, Rank to) {
    const auto sender = tools::rankOf(job, from), receiver = tools::rankOf(job, to);
    if (!sender || !receiver || sender->netNamespace.empty())
      throw std::runtime_error("the job's ranks have no links of their own here");
    directions.push_back({{from, to}, {*sender, *receiver, noisyBitsPerSecond}});
  };
  for (int stage = 0; stage < shape.pipelineParallel; ++stage) {
    for (int replica = 0; replica < shape.dataParallel; ++replica) {
      const Rank one = replica * shape.pipelineParallel + stage;
      const Rank next = (replica + 1) % shape.dataParallel * shape.pipelineParallel + stage;
      add(one, next);
      if (shape.dataParallel > 2) add(next, one);
    }
  }
  return directions;
}

}  // namespace

NoisyLinks::NoisyLinks(const tools::JobDescription& job, const demo::JobShape& shape, Link slow, std::uint64_t seed) {
  auto slowed = tools::makeSharedCounter();
  if (!slowed) throw std::runtime_error(slowed.error().message());
  slowed_ = *slowed;
  const std::vector<Direction> directions = ringLinks(job, shape);
  const auto undo = [directions] {
    for (const Direction& each : directions) each.limit.remove();
  };
  const auto step = [all = directions, slow, flag = slowed_, dice = demo::Dice(seed)]() mutable {
    for (Direction& each : all) {
      const bool isSlow = *flag != 0 && each.link == slow;
      each.limit.setRate(noisyBitsPerSecond * dice.between(1 - scatter, 1 + scatter) * (isSlow ? slowShare : 1));
      (void)each.limit.change();
    }
    return Nanoseconds(1s);
  };
  for (const Direction& each : directions)
    if (const auto free = each.limit.mayBeApplied(); !free) throw std::runtime_error(free.error().message());
  auto guardian = tools::Guardian::start({undo, step, -1});
  if (!guardian) throw std::runtime_error(guardian.error().message());
  guardian_.emplace(std::move(*guardian));
  for (const Direction& each : directions)
    if (const auto done = each.limit.apply(); !done) throw std::runtime_error(done.error().message());
}

}  // namespace falcon::injections
