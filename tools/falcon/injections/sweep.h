// `falcon injections --sweep`: faults of real size, among links that are all shaped alike.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "injections/cells.h"
#include "injections/scoring.h"
#include "injections/slow_job.h"

namespace falcon::injections {

/// s that a job has to be known for healthy, wherever injections begin.
inline constexpr double forBaseline = 240;

struct CellResult {
  Cell cell;
  int count = 0;
  int named = 0;                         ///< all that was slow was named
  int innocent = 0;                      ///< ranks, directions of links and hosts that were named and not slow
  std::optional<double> heldSeconds;     ///< median of how long the job was held until the verdict
  std::optional<double> verdictSeconds;  ///< median, from the onset to the verdict
  /// Where the job works around what it finds: medians over the injections that slowed it enough to tell.
  std::optional<double> recovered, bound;
};

/// A job for every share of the exchange that the cells want, whose size is fitted to this machine first; every
/// injection lasts until it was named, or three quarters of a minute.
/// Where the job may work around it, it goes on until the remedy has been at work for a while, and the next one waits
/// until it is undone.
/// @param surroundings  makes them, with a folder of its own for each job
/// Throws std::runtime_error where this machine cannot shape links, and Interrupted.
std::vector<CellResult> sweep(const std::vector<Cell>& cells, int count,
                              const std::function<demo::JobSurroundings(const std::string& name)>& surroundings,
                              const std::function<void(const demo::Said&)>& hear);

/// {"kind", "factor", "count", "named", "innocent", "validation_s", "verdict_s", "recovered", "bound"}; what there is
/// none of is null.
nlohmann::ordered_json toJson(const CellResult& result);

/// What keeps the whole from being good: of links from 1.5 on 95 % are named, at 1.3 four of five, at 1.2 it is told
/// only; nobody innocent; a job is held for 3 s at most. Of what any remedy could give back links get 0.9, ranks 0.8,
/// and the mean over all cells 0.8. Only of the cells that were run.
std::vector<std::string> shortcomingsOf(const std::vector<CellResult>& results);

}  // namespace falcon::injections
