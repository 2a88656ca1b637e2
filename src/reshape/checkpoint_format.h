// What a checkpoint is on the storage.
//
//   <folder>/iteration-<12 digits>/<part>.state      the part's buffers, back to back
//   <folder>/iteration-<12 digits>/<part>.manifest   text; it is there only when all of the state is
//   ....draft                                        either of them in the making
//
// A part is what one rank writes: "rank-3", its own state, or "stage-0-shard-1", what all replicas of that place have.
// A manifest, one thing a line:
//   falcon-checkpoint 1
//   job <iteration> <ranks> <pipeline-parallel size> <tensor-parallel size>
//   buffer <bytes> <checksum of them, XXH3, 16 hex digits> <name>
//   end <checksum of the lines above>
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace falcon::reshape {

/// This rank's place, as checkpoints need it. Without a registered layout every rank is its own replica.
struct Place {
  Rank rank = 0;
  int ranks = 1;
  int dataSize = 1, pipelineSize = 1, tensorSize = 1;
  int dataIndex = 0, pipelineIndex = 0, tensorIndex = 0;
  bool hasLayout = false;
  int role =
      -1;  ///< where ranks have exchanged theirs: what a rank has alone is its role's, by which it is found again

  int roleOrRank() const { return role < 0 ? rank : role; }
};

struct Manifest {
  struct Buffer {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint64_t checksum = 0;
    bool operator==(const Buffer&) const = default;
  };
  std::uint64_t iteration = 0;
  int ranks = 1, pipelineSize = 1, tensorSize = 1;
  std::uint64_t run = 0;        ///< see Found
  std::vector<Buffer> buffers;  ///< in the order of the state file
  bool operator==(const Manifest&) const = default;

  std::uint64_t bytes() const;
};

/// A part that is there. The same number of `run` have those that were taken together: after a restart an iteration may
/// come again, with other state, and one rank has its new part when another still has the old one. 0: it does not say.
struct Found {
  Found() = default;
  Found(std::uint64_t number, std::uint64_t together = 0) : iteration(number), run(together) {}
  std::uint64_t iteration = 0, run = 0;
  auto operator<=>(const Found&) const = default;
};

std::string encode(const Manifest& manifest);
/// Checked word by word. Errors (invalidArgument): another version, cut short, changed.
Result<Manifest> decodeManifest(std::string_view text);

std::string ownPart(const Place& place);
std::string replicatedPart(const Place& place);
/// Whether this replica is the one that writes what all have: a different one for each place, so that writing is
/// shared.
bool writesReplicated(const Place& place);

std::string folderOf(const std::string& folder, std::uint64_t iteration);
/// The iteration of a name in the folder; nothing: it is no checkpoint's.
std::optional<std::uint64_t> iterationOf(std::string_view name);

}  // namespace falcon::reshape
