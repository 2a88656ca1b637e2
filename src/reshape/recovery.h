// Which checkpoint a job goes on from, and who reads what of it: decided alike on every rank from what all have told.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "base/wire.h"
#include "reshape/checkpoint_format.h"

namespace falcon::reshape {

/// What one rank can read.
struct Findings {
  int group = 0;          ///< ranks of the same number share the replicated part
  bool needsOwn = false;  ///< it has registered state of its own
  bool needsReplicated = false;
  std::vector<Found> own;         ///< of its own part
  std::vector<Found> replicated;  ///< of its group's
  std::string problem;            ///< why it could not look; "": it could
};
/// The iterations that are in all of these lists, ascending.
std::vector<std::uint64_t> commonOf(const std::vector<std::vector<std::uint64_t>>& lists);

/// In what ranks tell each other.
void putIterations(WireWriter& wire, const std::vector<std::uint64_t>& iterations);
std::vector<std::uint64_t> takeIterations(WireReader& wire);

std::string encode(const Findings& findings);
Result<Findings> decodeFindings(std::string_view bytes);

struct Recovery {
  std::uint64_t iteration = 0;
  /// By rank, who reads the replicated part for it: the lowest rank of its group that finds it, or itself.
  std::vector<Rank> readers;
};

/// The newest iteration that is complete: every rank finds its own part, and in every group somebody (`shared`), or
/// else everybody, finds the replicated one. Nothing: there is none.
/// @param spoiled  iterations that were found and turned out not to be readable
std::optional<Recovery> chooseRecovery(const std::vector<Findings>& byRank, bool shared,
                                       const std::set<std::uint64_t>& spoiled = {});

}  // namespace falcon::reshape
