#include "collectives/time_estimate.h"

#include <bit>

#include "collectives/algorithm_choice.h"

namespace falcon::collectives {
namespace {

constexpr double callMicroseconds = 1;

struct Link {
  double hopMicroseconds;
  double bytesPerMicrosecond;
};
constexpr Link memory{3, 3000}, socket{25, 1000};
constexpr double copyBytesPerMicrosecond = 5000;

/// What a call asks of the busiest link.
struct Work {
  double hops = 0;
  double bytes = 0;
};

bool goesByRing(const Call& call, int ranks, bool throughMemory) {
  const Extent extent = throughMemory ? Extent::node : Extent::network;
  return &chooseAlgorithm(call.operation, call.count * sizeOf(call.type), ranks, PreferenceMasks::everything, nullptr,
                          extent) == &ringAllReduce;
}

Work workOf(const Call& call, int ranks, bool throughMemory, Traffic traffic) {
  const double bytes = static_cast<double>(call.count) * static_cast<double>(sizeOf(call.type));
  const double others = ranks - 1;
  switch (call.operation) {
    case Operation::allReduce: {
      if (traffic == Traffic::asChosen)
        traffic = goesByRing(call, ranks, throughMemory) ? Traffic::ring : Traffic::tree;
      if (traffic == Traffic::ring) return {2 * others, 2 * others / ranks * bytes};
      return {2.0 * std::bit_width(static_cast<unsigned>(ranks - 1)), 2 * bytes};
    }
    case Operation::allGather:
    case Operation::reduceScatter:
      return {others, others * bytes};
    case Operation::broadcast:
    case Operation::reduce:
      return {others, bytes};
    case Operation::allToAll:
    case Operation::gather:
    case Operation::scatter:
      return {1, others * bytes};
    case Operation::send:
    case Operation::receive:
      return {1, bytes};
  }
  return {};
}

}  // namespace

double estimatedMicroseconds(const LinkModel& links, const Call& call, Traffic traffic) {
  if (call.count == 0) return callMicroseconds;
  if (links.ranks == 1)
    return callMicroseconds +
           static_cast<double>(call.count) * static_cast<double>(sizeOf(call.type)) / copyBytesPerMicrosecond;
  const Link& link = links.throughMemory ? memory : socket;
  const Work work = workOf(call, links.ranks, links.throughMemory, traffic);
  return callMicroseconds + work.hops * link.hopMicroseconds + work.bytes / link.bytesPerMicrosecond;
}

}  // namespace falcon::collectives
