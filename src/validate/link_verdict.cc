#include "validate/link_verdict.h"

#include <cmath>
#include <optional>
#include <set>

#include "base/format.h"
#include "validate/robust_statistics.h"

namespace falcon::validate {
namespace {

const double slowLog = std::log(2.5);
const double suspectLog = std::log(2.0);
const double ownHistoryLog = std::log(2.0);
const double gapLog = std::log(1.5);
constexpr double deviations = 5;
constexpr double suspectDeviations = 2.5;
// Once is never enough: a process that lost its core for a moment made links look up to 16 times slower (measured).
constexpr int fewestMeasurements = 3;
// Some may be disturbed or not answered.
constexpr int mostAttempts = 5;
constexpr std::size_t fewestPeers = 3;
// Of the longer iteration.
constexpr double leastShare = 0.01;
// Usual scatter (logarithms) of healthy links between processes of one machine.
constexpr double usualScatter = 0.3;
constexpr double priorWeight = 8;

/// One link with all its measurements.
struct Measured {
  Link link;
  int count = 0;               ///< measurements that can accuse it
  double slowness = 0;         ///< logarithm of seconds per byte, of the best measurement: noise only ever slows down
  double ownExcess = unknown;  ///< the same above its own healthy time
  double allowance = 0;        ///< logarithm of what a slow rank at an end explains
  double excess = unknown;     ///< above peers (or above its own history where there are too few), less the allowance
  double threshold = 0;        ///< for `excess`
  bool accusable = true;       ///< somebody may wait for it
  bool named = false;
};

struct Medium {
  std::vector<Measured> links;
  std::size_t peers = 0;
  double centre = unknown;
  double scatter = usualScatter;
};

/// Logarithm of the slowdown of the slower rank at the link's ends; nothing where neither is slow.
std::optional<double> slownessAtEnds(const Link& link, const std::vector<SlowRank>& slowRanks) {
  std::optional<double> slowness;
  for (const auto& rank : slowRanks)
    if (rank.rank == link.from || rank.rank == link.to)
      slowness = std::max(slowness.value_or(0), std::log(rank.slowdown));
  return slowness;
}

double thresholdFor(int count, double scatter) {
  return std::max(slowLog, deviations * scatter / std::sqrt(std::max(count, fewestMeasurements)));
}

/// Sets every link's excess and threshold.
void compare(Medium& medium, const std::vector<SlowRank>& slowRanks) {
  std::vector<double> slowness, own;
  for (const auto& link : medium.links) {
    if (slownessAtEnds(link.link, slowRanks)) continue;
    slowness.push_back(link.slowness);
    if (!std::isnan(link.ownExcess)) own.push_back(link.ownExcess);
  }
  medium.peers = slowness.size();
  const bool comparable = slowness.size() >= fewestPeers;
  if (comparable) {
    medium.centre = median(slowness);
    medium.scatter = robustDeviation(slowness, usualScatter, priorWeight);
  }
  // What happened to all links alike is not a link's fault.
  const bool drifts = own.size() >= fewestPeers;
  const double drift = drifts ? median(own) : 0;
  // Two noisy figures, now and then, so sqrt(2) times the scatter.
  const double ownScatter =
      drifts ? robustDeviation(own, std::sqrt(2) * usualScatter, priorWeight) : std::sqrt(2) * usualScatter;

  for (auto& link : medium.links) {
    const auto atEnds = slownessAtEnds(link.link, slowRanks);
    link.allowance = atEnds ? *atEnds + std::log(2.0) : 0;
    link.threshold = thresholdFor(link.count, medium.scatter);
    link.ownExcess -= drift + link.allowance;
    const bool historyKnown = !std::isnan(link.ownExcess);
    const double ownThreshold = thresholdFor(link.count, ownScatter);
    if (comparable) {
      link.excess = link.slowness - medium.centre - link.allowance;
      // Always slower than others: known, and no fault.
      if (historyKnown && link.ownExcess < ownHistoryLog) link.excess = std::min(link.excess, link.ownExcess);
    }
    // Its own history alone decides where there are no peers; beside them only if it is the same for all the others.
    const bool clearer = comparable && drifts && link.ownExcess / ownThreshold > link.excess / link.threshold;
    if (historyKnown && (!comparable || clearer)) {
      link.excess = link.ownExcess;
      link.threshold = ownThreshold;
    }
  }
}

/// Finds those that nobody waits for. Through sockets bytes may be under way that neither end sees moving.
void excuse(Medium& medium, transport::Medium kind, const LinkUse& use) {
  for (auto& link : medium.links) {
    const auto moving = use.moving.find(link.link);
    const bool isNothing = kind == transport::Medium::sharedMemory && moving != use.moving.end() &&
                           moving->second < leastShare * use.longerIteration;
    link.accusable = !isNothing && !use.onlyCompared.contains(link.link);
  }
}

/// Names what is above its threshold and apart from the rest.
void name(Medium& medium) {
  std::vector<Measured*> above;
  double slowestOther = -std::numeric_limits<double>::infinity();
  for (auto& link : medium.links) {
    if (std::isnan(link.excess)) continue;
    const bool isAbove = link.excess >= link.threshold;
    if (isAbove && !link.accusable) continue;  // measured once perhaps: it tells nothing of the others
    if (isAbove && link.count >= fewestMeasurements)
      above.push_back(&link);
    else
      slowestOther = std::max(slowestOther, link.excess);
  }
  std::sort(above.begin(), above.end(), [](const Measured* a, const Measured* b) { return a->excess < b->excess; });
  bool apart = false;
  for (Measured* link : above) {
    apart = apart || link->excess - slowestOther >= gapLog;
    if (apart)
      link->named = true;
    else
      slowestOther = link->excess;
  }
}

std::string rateText(double bytesPerSecond) {
  return fmt::format("{:.{}f} MB/s", bytesPerSecond / 1e6, bytesPerSecond < 1e8 ? 1 : 0);
}

std::string evidenceFor(const Measured& link, const Medium& medium, transport::Medium kind,
                        const std::map<Link, double>& knownRates) {
  std::string text = rateText(std::exp(-link.slowness));
  if (medium.peers >= fewestPeers)
    text += fmt::format(" against a median of {} over {} {} links", rateText(std::exp(-medium.centre)), medium.peers,
                        kind == transport::Medium::socket ? "socket" : "shared-memory");
  if (const auto before = knownRates.find(link.link); before != knownRates.end())
    text += fmt::format(", {} when it was healthy", rateText(before->second));
  return text + fmt::format(", measured {}", link.count == 1   ? "once"
                                             : link.count == 2 ? "twice"
                                                               : fmt::format("{} times", link.count));
}

}  // namespace

LinkJudgement judgeLinks(const VerdictInput& input, const std::vector<SlowRank>& slowRanks) {
  const std::map<Link, double>& knownRates = input.knownLinkRates;
  std::map<transport::Medium, std::map<Link, Measured>> byMedium;
  std::set<Link> answered;
  std::map<Link, int> asked;  // times, answered or not
  for (const auto& measurement : input.links) {
    ++asked[measurement.link];
    if (measurement.status != LinkStatus::measured || !(measurement.bytesPerSecond() > 0)) continue;
    answered.insert(measurement.link);
    const auto [at, first] = byMedium[measurement.medium].try_emplace(measurement.link);
    Measured& link = at->second;
    link.link = measurement.link;
    const double slowness = -std::log(measurement.bytesPerSecond());
    link.slowness = first ? slowness : std::min(link.slowness, slowness);
    link.count += !measurement.disturbed();
  }

  LinkJudgement judgement;
  for (const auto& [link, attempts] : asked)
    if (!answered.contains(link)) judgement.silent.push_back(link);

  for (auto& [kind, links] : byMedium) {
    Medium medium;
    for (auto& [id, link] : links) {
      if (const auto before = knownRates.find(id); before != knownRates.end() && before->second > 0)
        link.ownExcess = link.slowness + std::log(before->second);
      medium.links.push_back(link);
    }
    compare(medium, slowRanks);
    excuse(medium, kind, input.use);
    name(medium);
    const auto named =
        std::count_if(medium.links.begin(), medium.links.end(), [](const Measured& link) { return link.named; });
    const bool most = medium.peers >= fewestPeers && 2 * static_cast<std::size_t>(named) > medium.links.size();
    if (most)
      judgement.remark = fmt::format("{} of {} links look slow, too many to accuse one", named, medium.links.size());
    if (medium.peers < fewestPeers && judgement.remark.empty() &&
        std::any_of(medium.links.begin(), medium.links.end(),
                    [](const Measured& link) { return std::isnan(link.excess); }))
      judgement.remark = fmt::format("too few links to compare ({})", medium.links.size());

    const double suspect = std::max(suspectLog, suspectDeviations * medium.scatter);
    for (const Measured& link : medium.links) {
      if (std::isnan(link.excess)) continue;
      if (link.excess + link.allowance > suspect) judgement.lookSlow.insert(link.link);
      if (!link.accusable) continue;
      const double margin = link.excess / link.threshold;
      if (link.named && !most) {
        judgement.slow.push_back({link.link, std::exp(link.excess + link.allowance),
                                  1 - 0.1 * std::exp(-3 * (margin - 1)), evidenceFor(link, medium, kind, knownRates)});
        continue;
      }
      if (link.allowance > 0 && link.excess + link.allowance > suspect) judgement.explainedAway.push_back(link.link);
      if (link.excess > suspect && asked[link.link] < mostAttempts) judgement.toConfirm.push_back(link.link);
      judgement.suspicion = std::max(judgement.suspicion, std::min(1.0, margin));
    }
  }
  return judgement;
}

}  // namespace falcon::validate
