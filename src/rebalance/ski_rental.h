// When which strategy pays: rent (stay slow) until the rent paid equals the price of buying.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"

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

/// One rung of a ladder of remedies: each is bought on top of those before.
struct Remedy {
  double priceSeconds = 0;  ///< more than 0
  double remaining = 0;     ///< of what is lost without any remedy, the share that is still lost with this one; 0 to 1
};

/// What a fail-slow that costs a second a second costs in all if it lasts so long and each remedy is bought once the
/// loss has reached its threshold. Remedies by price and thresholds, both ascending; what remains, descending.
double costOf(std::span<const Remedy> ladder, std::span<const double> lossAt, double duration);
/// The same with foresight: nothing, or the best remedy at once.
double leastCostOf(std::span<const Remedy> ladder, double duration);

/// The loss at which each remedy is bought: its price. So a remedy that helped too little is followed by the next one.
/// Costs at most competitiveBound times what foresight would, whatever the duration: the rent paid is never more than
/// that, nor is the newest price, which the sum of all prices so far exceeds by that much. 2 for one remedy.
/// Source: Karlin et al., Competitive snoopy caching (1988), for one; Lotker, Patt-Shamir and Rawitz, Rent, lease or
/// buy (2008), for several, whose additive case (a purchase pays for the next) is at 2.
std::vector<double> thresholdsOf(std::span<const Remedy> ladder);
double competitiveBound(std::span<const Remedy> ladder);

/// The same where it is known how long such fail-slows have lasted, seconds: thresholds whose mean cost over these is
/// least, one after the other from those of thresholdsOf on, so never more than theirs. As the next one may be unlike
/// them, each stays within `trust` and 1 / trust of its price: with one remedy the cost is at most 1 + 1 / trust times
/// what foresight would pay, with several (1 + (competitiveBound - 1) / trust) / trust times.
/// Source: Karlin et al., Competitive randomized algorithms for nonuniform problems (1990), for a known distribution;
/// Kumar, Purohit and Svitkina, Improving online algorithms via ML predictions (2018), for the trust.
std::vector<double> thresholdsFor(std::span<const Remedy> ladder, std::span<const double> durations,
                                  double trust = 0.5);

/// What strategies cost: an estimate at first, then what carrying them out took, the newest half of it. What is nearly
/// free never costs less than priceOf, which keeps a blip from changing the job.
class Prices {
 public:
  /// @param estimate  where one is known; else priceOf
  double of(Strategy strategy, double iterationSeconds, std::optional<double> estimate = {}) const;
  void took(Strategy strategy, double seconds, double iterationSeconds, std::optional<double> estimate = {});

 private:
  std::map<Strategy, double> measured_;
};

/// Against flapping: a remedy that was taken back before it had paid for itself may come again only after a pause,
/// twice as long each time in a row. Pure: times come with the calls.
class CoolDown {
 public:
  static constexpr Nanoseconds shortest = 30s, longest = 600s;
  /// A remedy pays in so many times its price: it takes away a tenth of the time at least (an onset).
  static constexpr double paysIn = 10;

  void applied(Nanoseconds now) { applied_ = now; }
  void undone(Nanoseconds now, double priceSeconds);
  bool allows(Nanoseconds now) const { return now >= until_; }
  Nanoseconds until() const { return until_; }

 private:
  std::optional<Nanoseconds> applied_;
  Nanoseconds pause_{0}, until_{0};
};

}  // namespace falcon::rebalance
