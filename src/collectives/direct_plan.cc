#include "collectives/direct_plan.h"

#include "collectives/algorithm_choice.h"

namespace falcon::collectives {

std::optional<DirectRunner> planDirect(DirectMember& member, const MemberShape& shape, const Call& call) {
  if (call.count == 0 || isPointToPoint(call.operation)) return {};
  // Each rank has a factor of its own, which only itself can apply; and who prefers some algorithms means those over
  // connections.
  if (call.reduction == ReduceOp::preMulSum || shape.preferred[call.operation] != PreferenceMasks::everything)
    return {};
  const DirectAlgorithm* algorithm = chooseDirect(call.operation, bytesOf(shape, call), shape.size, shape.tuning.get());
  if (!algorithm) return {};
  return planDirect(member, shape, call, *algorithm);
}

std::optional<DirectRunner> planDirect(DirectMember& member, const MemberShape& shape, const Call& call,
                                       const DirectAlgorithm& algorithm) {
  const std::size_t elementBytes = sizeOf(call.type);
  const DirectShape direct{shape.rank, shape.size, call.peer, call.count, cacheLine / elementBytes};
  DirectShape part = direct;
  part.count = partOfCall(member, algorithm, call.count, elementBytes);
  const bool fits = algorithm.postsAtMost(part) * elementBytes <= member.inlineBytes();
  if (!fits && !member.readsMemory()) return {};
  return DirectRunner(member, algorithm, direct, call, operandsOf(shape, call));
}

}  // namespace falcon::collectives
