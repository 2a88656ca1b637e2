#include "run/options.h"

#include "base/format.h"

namespace falcon::tools {
namespace {

constexpr int mostRanks = 4096;
constexpr int mostRestarts = 1000;

}  // namespace

std::optional<std::string> whyNot(const RunOptions& options) {
  if (options.ranks < 1 || options.ranks > mostRanks)
    return fmt::format("-n {}: the number of ranks must be 1 to {}, for example -n 2", options.ranks, mostRanks);
  if (options.nodes < 0 || options.nodes > options.ranks)
    return fmt::format("--nodes {}: every node needs a rank, so use 1 to {} (the value of -n)", options.nodes,
                       options.ranks);
  if (options.restarts < 0 || options.restarts > mostRestarts)
    return fmt::format("--restarts {}: use 0 to {}", options.restarts, mostRestarts);
  if (options.spares < 0 || options.spares > mostRanks - options.ranks)
    return fmt::format("--spares {}: use 0 to {}: ranks and spares are {} at most", options.spares,
                       mostRanks - options.ranks, mostRanks);
  if (options.spares > 0 && options.restarts == 0)
    return fmt::format("--spares {}: a spare takes a place when the job is restarted; add --restarts {}",
                       options.spares, options.spares);
  if (options.spares > 0 && options.nodes == 0 && options.cgroups == UseCgroups::no && options.bind != Bind::core)
    return fmt::format(
        "--spares {}: a spare is a place of its own, and without --cgroups, --nodes or --bind core all places are the "
        "same; add one of them",
        options.spares);
  if (options.program.empty())
    return "no program to run: give it after --, for example: falcon run -n 4 -- ./train --steps 10";
  return std::nullopt;
}

}  // namespace falcon::tools
