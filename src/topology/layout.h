// Hybrid parallelism: which rank plays which part.
#pragma once

#include <vector>

#include "base/types.h"

namespace falcon::topology {

/// A rank's part: replica, pipeline stage, tensor shard.
struct Coordinates {
  int data = 0, pipeline = 0, tensor = 0;
  bool operator==(const Coordinates&) const = default;
};

/// Sizes of data, pipeline and tensor parallelism; job rank = (data * pipelineSize + pipeline) * tensorSize + tensor.
/// All sizes at least 1, ranks in range.
struct Layout {
  int dataSize = 1, pipelineSize = 1, tensorSize = 1;

  int size() const { return dataSize * pipelineSize * tensorSize; }
  Rank rankAt(Coordinates at) const { return (at.data * pipelineSize + at.pipeline) * tensorSize + at.tensor; }
  Coordinates coordinatesOf(Rank rank) const {
    return {rank / (tensorSize * pipelineSize), rank / tensorSize % pipelineSize, rank % tensorSize};
  }
  /// The group a rank belongs to, in the order of the coordinate that differs.
  std::vector<Rank> dataGroup(Rank member) const;
  std::vector<Rank> pipelineGroup(Rank member) const;
  std::vector<Rank> tensorGroup(Rank member) const;
  /// All ranks of one replica: its stages and shards.
  std::vector<Rank> replica(int data) const;
  bool operator==(const Layout&) const = default;
};

}  // namespace falcon::topology
