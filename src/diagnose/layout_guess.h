// Data, pipeline and tensor parallelism as the shapes of the communicators tell them.
#pragma once

#include <optional>
#include <span>

#include "instrument/communicator_roles.h"
#include "topology/layout.h"

namespace falcon::diagnose {

struct PlacedLayout {
  topology::Layout sizes;
  bool pipelineOutermost = false;  ///< rank = (pipeline * dataSize + data) * tensorSize + tensor, as Megatron has it
  topology::Coordinates at(Rank rank) const;
};

/// A layout of `size` ranks in which every group is all ranks that differ in some of the coordinates only (or, where it
/// carries messages, ranks of one pipeline), and every dimension larger than one has a group whose role is that
/// (instrument::inferRoles). Nothing where none fits, or the groups do not tell.
std::optional<PlacedLayout> guessLayout(int size, std::span<const instrument::CommunicatorShape> groups);

}  // namespace falcon::diagnose
