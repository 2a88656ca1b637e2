#include "run/options.h"

#include "base/format.h"

namespace falcon::tools {
namespace {

constexpr int mostRanks = 4096;

}  // namespace

std::optional<std::string> whyNot(const RunOptions& options) {
  if (options.ranks < 1 || options.ranks > mostRanks)
    return fmt::format("-n {}: the number of ranks must be 1 to {}, for example -n 2", options.ranks, mostRanks);
  if (options.nodes < 0 || options.nodes > options.ranks)
    return fmt::format("--nodes {}: every node needs a rank, so use 1 to {} (the value of -n)", options.nodes,
                       options.ranks);
  if (options.program.empty())
    return "no program to run: give it after --, for example: falcon run -n 4 -- ./train --steps 10";
  return std::nullopt;
}

}  // namespace falcon::tools
