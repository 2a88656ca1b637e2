// NCCL_FALCON_TUNING_FILE: rows that come before the built-in tables of algorithms, as `falcon tune` measures them.
// docs/tuning.md describes the format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collectives/algorithm_choice.h"

namespace falcon::collectives {

const char* nameOf(Extent extent);

/// The rows of one extent. The last one that applies counts; where none does, the built-in tables.
struct Tuning {
  std::vector<AlgorithmRow> algorithms;
  std::vector<DirectRow> direct;  ///< also those that say "over connections"
};

/// One line of the file.
struct TuningLine {
  Operation operation;
  Extent extent;
  int fromRanks;
  std::size_t fromBytes;
  std::size_t toBytes;  ///< the largest size_t: no end
  std::string algorithm;
};
std::string format(const TuningLine& line);

/// What a line may name for an operation at a extent: "flat", "ring" ... ; none for operations without a choice.
std::vector<std::string> algorithmsFor(Operation operation, Extent extent);

/// All or nothing. Errors (invalidArgument, not logged): the first line that is wrong, with its number and what would
/// be right.
Result<Tuning> parseTuning(std::string_view text, Extent extent);

/// The text of NCCL_FALCON_TUNING_FILE, if it is a file that can be followed; else "", which is the built-in tables.
/// A file that cannot be read or followed is told in one WARN a process.
std::string tuningTextFromEnvironment();

}  // namespace falcon::collectives
