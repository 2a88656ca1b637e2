#include "diagnose/account.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "base/median.h"
#include "diagnose/reach.h"

namespace falcon::diagnose {
namespace {

/// What one candidate does to one observation.
struct Reached {
  std::size_t observation;
  Reach reach;
};

/// A candidate with a slowdown.
struct Chosen {
  std::size_t candidate;
  double theta;
};
using Set = std::vector<Chosen>;

class Fit {
 public:
  Fit(std::span<const Observation> observations, std::span<const Candidate> candidates, const Thresholds& thresholds)
      : observations_(observations), candidates_(candidates), thresholds_(thresholds), reached_(candidates.size()) {
    for (std::size_t c = 0; c < candidates.size(); ++c)
      for (std::size_t o = 0; o < observations.size(); ++o)
        if (const Reach reach = reachOf(candidates[c], observations[o]); !reach.isNone())
          reached_[c].push_back({o, reach});
  }

  /// The set that costs least, as far as adding, dropping and pairs find it.
  Set run() {
    Set set;
    while (static_cast<int>(set.size()) < thresholds_.mostExplanations) {
      Set better = withBest(set);
      if (set.size() + 2 <= static_cast<std::size_t>(thresholds_.mostExplanations))
        if (Set pair = withBestPair(set); !pair.empty() && (better.empty() || total(pair) < total(better)))
          better = std::move(pair);
      if (better.empty()) break;
      better = withoutUseless(refitted(std::move(better)));
      if (total(better) >= total(set)) break;
      set = std::move(better);
    }
    return set;
  }

  /// Would another explanation still pay?
  bool wantsMore(const Set& set) const {
    Set more = set;
    if (const auto best = bestFor(set)) {
      more.push_back(*best);
      return total(more) < total(set) && isFarOff(more, more.size() - 1);
    }
    return false;
  }

  double total(const Set& set) const {
    double cost = 0;
    for (std::size_t o = 0; o < observations_.size(); ++o) cost += costOf(o, rangeOf(o, set));
    for (const Chosen& member : set) cost += priceOf(member.candidate);
    return cost;
  }

  Explanation describe(const Set& set, std::size_t index) const {
    const Chosen& member = set[index];
    Explanation explanation{.candidate = candidates_[member.candidate], .theta = member.theta};
    explanation.gain = gainOf(set, index);
    double weight = 0;
    unsigned sources = 0;
    for (const Reached& reached : reached_[member.candidate]) {
      const Observation& seen = observations_[reached.observation];
      const bool agrees = reached.reach.calls && seen.value >= thresholds_.agreeingPart * member.theta &&
                          seen.value >= thresholds_.agreeingDeviations * seen.sigma;
      if (reached.reach.isMust() && !seen.settled) explanation.settled = false;
      if (!agrees) continue;
      sources |= 1u << static_cast<unsigned>(sourceOf(seen.quantity));
      if (seen.least >= seen.aloneFrom) explanation.aloneFrom = std::min(explanation.aloneFrom, seen.aloneFrom);
      // Where more than theta may be seen, or less, it does not tell how large theta is.
      if (reached.reach.slack == 0 && reached.reach.most == 1) weight += 1 / (seen.sigma * seen.sigma);
    }
    explanation.sources = std::popcount(sources);
    explanation.deviation = weight > 0 ? 1 / std::sqrt(weight) : std::numeric_limits<double>::infinity();
    decide(explanation);
    return explanation;
  }

 private:
  struct Range {
    double low = 0, high = 0;
  };

  static void widen(Range& range, const Reach& reach, double theta) {
    range.low = std::max(range.low, reach.least * theta);
    // A candidate that is not slower at all allows nothing.
    if (theta > 0) range.high = std::max(range.high, reach.most * theta + reach.slack);
  }

  Range rangeOf(std::size_t observation, const Set& set) const {
    Range range;
    for (const Chosen& member : set)
      widen(range, reachOf(candidates_[member.candidate], observations_[observation]), member.theta);
    return range;
  }

  double costOf(std::size_t observation, const Range& range) const {
    const Observation& seen = observations_[observation];
    // Who is faster than its peers is no evidence by itself, and the time under way may always be longer.
    double off = range.low > 0 ? std::max(range.low - seen.value, 0.0) : 0;
    if (seen.quantity != Quantity::transferTime) off = std::max(off, seen.value - range.high);
    off /= seen.sigma;
    return std::min(off * off, thresholds_.mostCost);
  }

  double priceOf(std::size_t candidate) const {
    return thresholds_.price + thresholds_.breadth * static_cast<double>(reached_[candidate].size());
  }

  struct Cost {
    double all = 0;
    double calling = 0;  ///< of the observations that call for the candidate
  };
  /// Of what the candidate reaches, with it, beside what others do there.
  Cost costWith(std::size_t candidate, double theta, const std::vector<Range>& others) const {
    Cost cost;
    for (std::size_t i = 0; i < reached_[candidate].size(); ++i) {
      const Reached& reached = reached_[candidate][i];
      Range range = others[i];
      widen(range, reached.reach, theta);
      const double each = costOf(reached.observation, range);
      cost.all += each;
      if (reached.reach.calls) cost.calling += each;
    }
    return cost;
  }

  std::vector<Range> rangesOf(std::size_t candidate, const Set& others) const {
    std::vector<Range> ranges;
    ranges.reserve(reached_[candidate].size());
    for (const Reached& reached : reached_[candidate]) ranges.push_back(rangeOf(reached.observation, others));
    return ranges;
  }

  /// What each observation that the candidate reaches would be worth to it as theta, and their weighted mean.
  std::vector<double> thetasOf(std::size_t candidate) const {
    std::vector<double> thetas;
    double sum = 0, weight = 0;
    for (const Reached& reached : reached_[candidate]) {
      const Observation& seen = observations_[reached.observation];
      if (!reached.reach.calls || !std::isfinite(reached.reach.most)) continue;
      const double theta = seen.value - reached.reach.slack;
      if (theta <= 0) continue;
      thetas.push_back(theta);
      const double inverse = 1 / (seen.sigma * seen.sigma);
      sum += inverse * seen.value;
      weight += inverse;
    }
    constexpr std::size_t many = 24;
    if (thetas.size() > many) {
      std::sort(thetas.begin(), thetas.end());
      std::vector<double> some;
      for (std::size_t i = 0; i < many; ++i) some.push_back(thetas[i * (thetas.size() - 1) / (many - 1)]);
      thetas = std::move(some);
    }
    if (weight > 0) thetas.push_back(sum / weight);
    return thetas;
  }

  struct Best {
    double theta = 0, gain = 0;  ///< gain: less the price
  };
  /// Nothing where it does not pay.
  std::optional<Best> fit(std::size_t candidate, const Set& others) const {
    const std::vector<Range> ranges = rangesOf(candidate, others);
    const Cost without = costWith(candidate, 0, ranges);
    if (without.calling <= thresholds_.price) return std::nullopt;
    std::optional<Best> best;
    for (const double theta : thetasOf(candidate)) {
      const Cost with = costWith(candidate, theta, ranges);
      if (without.calling - with.calling <= priceOf(candidate)) continue;
      const double gain = without.all - with.all - priceOf(candidate);
      if (!best || gain > best->gain) best = Best{theta, gain};
    }
    return best;
  }

  static bool contains(const Set& set, std::size_t candidate) {
    return std::any_of(set.begin(), set.end(), [&](const Chosen& member) { return member.candidate == candidate; });
  }

  std::optional<Chosen> bestFor(const Set& set) const {
    std::optional<Chosen> best;
    double most = 0;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      if (contains(set, c)) continue;
      const auto found = fit(c, set);
      if (!found || found->gain <= most) continue;
      most = found->gain;
      best = Chosen{c, found->theta};
    }
    return best;
  }

  Set withBest(const Set& set) const {
    const auto best = bestFor(set);
    if (!best) return {};
    Set better = set;
    better.push_back(*best);
    return better;
  }

  /// Of the candidates that could explain most alone, whether or not that pays, the two that do best together.
  Set withBestPair(const Set& set) const {
    std::vector<std::pair<double, std::size_t>> order;  // what is wrong of what it reaches
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      if (contains(set, c)) continue;
      double wrong = 0;
      for (const Reached& reached : reached_[c])
        if (reached.reach.calls) wrong += costOf(reached.observation, rangeOf(reached.observation, set));
      if (wrong > thresholds_.price) order.emplace_back(wrong, c);
    }
    std::sort(order.rbegin(), order.rend());
    if (order.size() > static_cast<std::size_t>(thresholds_.mostForPairs))
      order.resize(static_cast<std::size_t>(thresholds_.mostForPairs));
    Set best;
    double least = total(set);
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const double theta : strongest(order[i].second)) {
        Set first = set;
        first.push_back({order[i].second, theta});
        const double firstCost = total(first);
        for (std::size_t j = i + 1; j < order.size(); ++j) {
          const auto second = fit(order[j].second, first);
          if (!second) continue;
          if (firstCost - second->gain >= least) continue;
          least = firstCost - second->gain;
          best = first;
          best.push_back({order[j].second, second->theta});
        }
      }
    }
    return best;
  }

  /// The mean and the greatest of what a candidate may be.
  std::vector<double> strongest(std::size_t candidate) const {
    const std::vector<double> thetas = thetasOf(candidate);
    if (thetas.empty()) return {};
    std::vector<double> two{thetas.back()};
    if (const double greatest = *std::max_element(thetas.begin(), thetas.end()); greatest > two.front())
      two.push_back(greatest);
    return two;
  }

  static Set without(const Set& set, std::size_t index) {
    Set rest = set;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(index));
    return rest;
  }

  Set refitted(Set set) const {
    constexpr int rounds = 2;
    for (int round = 0; round < rounds && set.size() > 1; ++round)
      for (std::size_t i = 0; i < set.size(); ++i)
        if (const auto again = fit(set[i].candidate, without(set, i))) set[i].theta = again->theta;
    return set;
  }

  Set withoutUseless(Set set) const {
    for (std::size_t i = 0; i < set.size();) {
      if (gainOf(set, i) <= priceOf(set[i].candidate))
        set = without(set, i), i = 0;
      else
        ++i;
    }
    return set;
  }

  /// What the observations that call for it would cost more without it.
  double gainOf(const Set& set, std::size_t index) const {
    const std::size_t candidate = set[index].candidate;
    const std::vector<Range> ranges = rangesOf(candidate, without(set, index));
    return costWith(candidate, 0, ranges).calling - costWith(candidate, set[index].theta, ranges).calling;
  }

  bool isFarOff(const Set& set, std::size_t index) const { return gainOf(set, index) >= thresholds_.gain; }

  void decide(Explanation& explanation) const {
    const bool isRank = explanation.candidate.kind == CandidateKind::rank;
    const double least = isRank ? thresholds_.leastOfRank : thresholds_.leastOfLink;
    const double needed = explanation.sources >= 2 ? least : std::max(least, explanation.aloneFrom);
    const double bound = explanation.theta - thresholds_.boundDeviations * explanation.deviation;
    double margin = std::min(std::sqrt(std::max(explanation.gain, 0.0) / thresholds_.gain), explanation.theta / needed);
    if (bound < thresholds_.leastBound) margin = std::min(margin, std::max(bound / thresholds_.leastBound, 0.0));
    explanation.margin = margin;
    explanation.isNamed = margin >= 1 && explanation.settled && explanation.candidate.accusable;
  }

  std::span<const Observation> observations_;
  std::span<const Candidate> candidates_;
  const Thresholds& thresholds_;
  std::vector<std::vector<Reached>> reached_;  // by candidate
};

}  // namespace

Account accountOf(std::span<const Observation> observations, std::span<const Candidate> candidates,
                  const Thresholds& thresholds) {
  Fit fit(observations, candidates, thresholds);
  const Set set = fit.run();
  Account account;
  account.cost = fit.total(set);
  account.tooMany = static_cast<int>(set.size()) >= thresholds.mostExplanations && fit.wantsMore(set);
  for (std::size_t i = 0; i < set.size(); ++i) {
    account.explanations.push_back(fit.describe(set, i));
    if (account.tooMany) account.explanations.back().isNamed = false;
  }
  std::stable_sort(
      account.explanations.begin(), account.explanations.end(),
      [](const Explanation& a, const Explanation& b) { return a.isNamed != b.isNamed ? a.isNamed : a.gain > b.gain; });
  return account;
}

}  // namespace falcon::diagnose
