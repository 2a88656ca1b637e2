#include "collectives/tuned_way.h"

#include <algorithm>

#include "collectives/time_estimate.h"

namespace falcon::collectives {
namespace {

std::optional<plugin::TunedFunction> functionOf(Operation operation) {
  switch (operation) {
    case Operation::broadcast:
      return plugin::TunedFunction::broadcast;
    case Operation::reduce:
      return plugin::TunedFunction::reduce;
    case Operation::allGather:
      return plugin::TunedFunction::allGather;
    case Operation::reduceScatter:
      return plugin::TunedFunction::reduceScatter;
    case Operation::allReduce:
      return plugin::TunedFunction::allReduce;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool costsOf(const MemberShape& shape, const Call& call, plugin::CostTable& costs) {
  if (!functionOf(call.operation)) return false;
  for (auto& row : costs) std::fill(std::begin(row), std::end(row), plugin::ignoredCost);
  const LinkModel links{shape.size, shape.extent == Extent::node};
  const auto offer = [&](int algorithm, Traffic traffic) {
    // The rows of the table have the order of algorithmWords().
    if ((shape.preferred[call.operation] >> algorithm & 1) == 0) return;
    costs[algorithm][plugin::protocolSimple] = static_cast<float>(estimatedMicroseconds(links, call, traffic));
  };
  offer(plugin::ringAlgorithm, Traffic::ring);
  if (call.operation == Operation::allReduce) offer(plugin::treeAlgorithm, Traffic::tree);
  return true;
}

TunedWay wayOf(const plugin::CostTable& offered, const plugin::CostTable& tuned, int channels, int mostChannels) {
  TunedWay way;
  way.channels = std::min(channels, mostChannels);
  bool changed = false;
  int best = -1;
  float least = 0;
  for (int algorithm = 0; algorithm < plugin::tunerAlgorithms; ++algorithm) {
    for (int protocol = 0; protocol < plugin::tunerProtocols; ++protocol) {
      const float before = offered[algorithm][protocol], after = tuned[algorithm][protocol];
      if (before < 0) continue;
      changed = changed || before != after;
      if (!(after >= 0) || (best >= 0 && after >= least)) continue;
      best = algorithm;
      least = after;
    }
  }
  if (changed && best >= 0) way.preferred = static_cast<std::uint8_t>(1U << best);
  return way;
}

TunedWay tunedWay(const plugin::TunerSession& tuner, const MemberShape& shape, const Call& call) {
  plugin::CostTable offered, tuned;
  if (!costsOf(shape, call, offered)) return {};
  std::copy(&offered[0][0], &offered[0][0] + plugin::tunerAlgorithms * plugin::tunerProtocols, &tuned[0][0]);
  // The host engine runs the calls of a group one by one.
  const auto channels = tuner.choose(*functionOf(call.operation), bytesOf(shape, call), 1, tuned);
  return channels ? wayOf(offered, tuned, *channels, shape.mostChannels) : TunedWay();
}

}  // namespace falcon::collectives
