// When which strategy pays: rent (stay slow) until the rent paid equals the price of buying.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace falcon::rebalance {

/// What can be done, in the order of its price. S1 is to ignore, R to re-route, S2 to re-split micro-batches, S3 to
/// change the topology, S4 to checkpoint and restart.
enum class Strategy : std::uint8_t { ignore, reroute, splitMicroBatches, changeTopology, restart };

/// "ignore", "re-route", "re-split", "swap", "restart".
const char* nameOf(Strategy strategy);

/// A strategy that is possible here, and the seconds the job loses by carrying it out.
struct PricedStrategy {
  Strategy strategy = Strategy::ignore;
  double priceSeconds = 0;
};

/// What every strategy costs a job whose healthy iteration takes `iterationSeconds`. A new ring and a new split take
/// effect between two iterations: they pay at once, and their price of an iteration or two only keeps a blip from
/// changing the job. Nodes are swapped in about a minute (Falcon, section 5.3); a restart from a checkpoint costs some
/// ten minutes of loading, warming up and lost work.
double priceOf(Strategy strategy, double iterationSeconds);

/// Seconds lost so far to one fail-slow; never negative.
double accumulatedLoss(std::int64_t slowIterations, double slowSeconds, double healthySeconds);

/// The dearest strategy whose price the loss has reached; nothing when none has. Staying slow until then and buying
/// costs at most twice what foresight would.
/// Source: Karlin et al., Competitive snoopy caching (1988); Falcon, arXiv 2410.12588, section 5.1.
std::optional<Strategy> strategyDue(double lossSeconds, std::span<const PricedStrategy> possible);

}  // namespace falcon::rebalance
