#include "diagnose/layout_guess.h"

#include <algorithm>
#include <map>
#include <vector>

namespace falcon::diagnose {
namespace {

using instrument::CommunicatorRole;
using instrument::CommunicatorShape;

enum Dimension { data = 1, pipeline = 2, tensor = 4 };

/// The dimensions in which the group's members differ.
int differing(const PlacedLayout& layout, const std::vector<Rank>& ranks) {
  const topology::Coordinates first = layout.at(ranks.front());
  int found = 0;
  for (const Rank rank : ranks) {
    const topology::Coordinates each = layout.at(rank);
    found |= (each.data != first.data ? data : 0) | (each.pipeline != first.pipeline ? pipeline : 0) |
             (each.tensor != first.tensor ? tensor : 0);
  }
  return found;
}

int extent(const topology::Layout& sizes, int dimensions) {
  return (dimensions & data ? sizes.dataSize : 1) * (dimensions & pipeline ? sizes.pipelineSize : 1) *
         (dimensions & tensor ? sizes.tensorSize : 1);
}

using Roles = std::map<CommunicatorId, CommunicatorRole>;

bool fits(const PlacedLayout& layout, std::span<const CommunicatorShape> groups, const Roles& roles) {
  int witnessed = 0;
  for (const CommunicatorShape& group : groups) {
    const CommunicatorRole role = roles.at(group.communicator);
    if (role == CommunicatorRole::unknown) continue;
    const int differs = differing(layout, group.members);
    const bool whole = static_cast<std::size_t>(extent(layout.sizes, differs)) == group.members.size();
    if (!whole && !(role == CommunicatorRole::pipeline && differs == pipeline)) return false;
    // Activations go from stage to stage; who sums gradients only is no shard of a layer.
    if (role == CommunicatorRole::pipeline && !(differs & pipeline)) return false;
    if (role == CommunicatorRole::data && differs == tensor) return false;
    if (role == CommunicatorRole::tensor && differs == data) return false;
    if (role == CommunicatorRole::pipeline ? differs == pipeline
                                           : role != CommunicatorRole::job && (differs == data || differs == tensor))
      witnessed |= differs;
  }
  const topology::Layout& sizes = layout.sizes;
  return (sizes.dataSize == 1 || witnessed & data) && (sizes.pipelineSize == 1 || witnessed & pipeline) &&
         (sizes.tensorSize == 1 || witnessed & tensor);
}

}  // namespace

topology::Coordinates PlacedLayout::at(Rank rank) const {
  if (!pipelineOutermost) return sizes.coordinatesOf(rank);
  return {rank / sizes.tensorSize % sizes.dataSize, rank / (sizes.tensorSize * sizes.dataSize),
          rank % sizes.tensorSize};
}

std::optional<PlacedLayout> guessLayout(int size, std::span<const CommunicatorShape> groups) {
  for (const CommunicatorShape& group : groups)
    if (std::any_of(group.members.begin(), group.members.end(), [&](Rank rank) { return rank < 0 || rank >= size; }))
      return std::nullopt;
  const Roles roles = instrument::inferRoles(groups);
  for (int tensorSize = 1; tensorSize <= size; ++tensorSize) {
    if (size % tensorSize != 0) continue;
    for (int pipelineSize = 1; pipelineSize <= size / tensorSize; ++pipelineSize) {
      if (size / tensorSize % pipelineSize != 0) continue;
      for (const bool outermost : {false, true}) {
        const PlacedLayout layout{{size / tensorSize / pipelineSize, pipelineSize, tensorSize}, outermost};
        if (fits(layout, groups, roles)) return layout;
      }
    }
  }
  return std::nullopt;
}

}  // namespace falcon::diagnose
