#include "validate/link_verdict.h"

#include <cmath>
#include <numeric>
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
// Where the scatter of these very links is known: Falcon (arXiv 2410.12588, section 4.3) holds links slow from 1.1 on;
// that must be the lower bound, at one chance in two thousand, and the link apart from a dozen others.
const double fineLog = std::log(1.15);
const double boundLog = std::log(1.1);
constexpr double boundDeviations = 3.3;
constexpr double fineDeviations = 6;
constexpr int fewestDegrees = 8;
constexpr double byChance = 8;
// How well equal links can be told apart at all: shaped links measured in a trap scatter by 0.4 to 0.7 %.
constexpr double resolution = 0.01;
// Of the longer iteration, that its bytes must have been under way for longer: of at most four causes in a row.
constexpr double leastPart = 0.2;
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
  std::vector<double> each{};  ///< logarithms of their seconds per byte
  double slowness = 0;         ///< logarithm of seconds per byte, of the best measurement: noise only ever slows down
  double ownExcess = unknown;  ///< the same above its own healthy time
  double allowance = 0;        ///< logarithm of what a slow rank at an end explains
  double excess = unknown;     ///< above peers (or above its own history where there are too few), less the allowance
  double threshold = 0;        ///< for `excess`
  bool holdsUp = false;        ///< profiling saw its bytes take a part of what iterations became longer by
  bool accusable = true;       ///< somebody may wait for it
  bool named = false;
};

struct Medium {
  std::vector<Measured> links;
  std::size_t peers = 0;
  double centre = unknown;
  double scatter = usualScatter;  ///< with what is usual
  double ownScatter = unknown;    ///< of these links alone
  int degrees = 0;                ///< of freedom, that `ownScatter` is known by
};

/// Logarithm of the slowdown of the slower rank at the link's ends; nothing where neither is slow.
std::optional<double> slownessAtEnds(const Link& link, const std::vector<SlowRank>& slowRanks) {
  std::optional<double> slowness;
  for (const auto& rank : slowRanks)
    if (rank.rank == link.from || rank.rank == link.to)
      slowness = std::max(slowness.value_or(0), std::log(rank.slowdown));
  return slowness;
}

double deviationOf(int count, double scatter) {
  return scatter / std::sqrt(std::max(count, fewestMeasurements));
}

double thresholdFor(int count, double scatter) {
  return std::max(slowLog, deviations * deviationOf(count, scatter));
}

/// The same where the scatter is these links' own and profiling saw the link hold up the job.
double fineThresholdFor(int count, double scatter) {
  const double deviation = deviationOf(count, scatter);
  return std::max({fineLog, boundLog + boundDeviations * deviation, fineDeviations * deviation});
}

/// How far equal links lie apart, and how far the measurements of one: the larger. A slow link is only ever slower, so
/// of two middle values the lower one counts: up to half of the links may be slow.
void findOwnScatter(Medium& medium, const std::vector<double>& slowness) {
  const double centre = lowerMedian(slowness, 0);
  std::vector<double> distances;
  for (const double value : slowness) distances.push_back(std::abs(value - centre));
  const double between = madToDeviation * lowerMedian(std::move(distances), 0);
  double squares = 0;
  int repeats = 0;
  for (const auto& link : medium.links) {
    const double mean = std::accumulate(link.each.begin(), link.each.end(), 0.0) / std::max(link.count, 1);
    for (const double value : link.each) squares += (value - mean) * (value - mean);
    repeats += std::max(link.count - 1, 0);
  }
  const double within = repeats > 0 ? std::sqrt(squares / repeats) : 0;
  medium.degrees = static_cast<int>(slowness.size()) - 1 + repeats;
  // A handful may lie close together by chance.
  medium.ownScatter = std::max({resolution, between, within}) * (1 + byChance / std::max(medium.degrees, 1));
}

bool holdsUpTheJob(const Link& link, const LinkUse& use) {
  const auto grown = use.grown.find(link);
  return grown != use.grown.end() && grown->second >= leastPart * use.longerIteration;
}

/// Sets every link's excess and threshold.
void compare(Medium& medium, const std::vector<SlowRank>& slowRanks, const LinkUse& use) {
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
    findOwnScatter(medium, slowness);
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
    link.holdsUp = comparable && link.allowance == 0 && holdsUpTheJob(link.link, use);
    if (link.holdsUp && medium.degrees >= fewestDegrees)
      link.threshold = std::min(link.threshold, fineThresholdFor(link.count, medium.ownScatter));
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
    apart = apart || link->excess - slowestOther >= std::min(gapLog, link->excess / 2);
    if (apart)
      link->named = true;
    else
      slowestOther = link->excess;
  }
}

std::string rateText(double bytesPerSecond) {
  return fmt::format("{:.{}f} MB/s", bytesPerSecond / 1e6, bytesPerSecond < 1e8 ? 1 : 0);
}

std::string evidenceFor(const Measured& link, const Medium& medium, transport::Medium kind, const VerdictInput& input) {
  std::string text = rateText(std::exp(-link.slowness));
  if (medium.peers >= fewestPeers)
    text += fmt::format(" against a median of {} over {} {} links", rateText(std::exp(-medium.centre)), medium.peers,
                        kind == transport::Medium::socket ? "socket" : "shared-memory");
  if (const auto before = input.knownLinkRates.find(link.link); before != input.knownLinkRates.end())
    text += fmt::format(", {} when it was healthy", rateText(before->second));
  text += fmt::format(", measured {}", link.count == 1   ? "once"
                                       : link.count == 2 ? "twice"
                                                         : fmt::format("{} times", link.count));
  if (link.holdsUp)
    text += fmt::format(
        "; in the job its bytes were under way for {:.0f} ms an iteration more, of {:.0f} ms that it "
        "takes longer",
        input.use.grown.at(link.link) * 1e3, input.use.longerIteration * 1e3);
  return text;
}

/// What is known of the slowest link that somebody may wait for, where none is named; empty: no link is slower.
std::string slowestOf(const Medium& medium, transport::Medium kind, const VerdictInput& input) {
  const Measured* slowest = nullptr;
  for (const Measured& link : medium.links)
    if (link.accusable && link.excess > boundLog && (!slowest || link.excess > slowest->excess)) slowest = &link;
  if (!slowest) return {};
  std::string text = fmt::format("the slowest link is {} -> {}: {}", slowest->link.from, slowest->link.to,
                                 evidenceFor(*slowest, medium, kind, input));
  if (slowest->excess < slowest->threshold)
    text += fmt::format(", {:.2f} times slower, and {:.2f} would be enough", std::exp(slowest->excess),
                        std::exp(slowest->threshold));
  if (!slowest->holdsUp) text += ", and nothing shows that the job waits for it";
  return text;
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
    if (measurement.disturbed()) continue;
    link.each.push_back(slowness);
    ++link.count;
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
    compare(medium, slowRanks, input.use);
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

    if (named == 0 && judgement.remark.empty()) judgement.remark = slowestOf(medium, kind, input);
    const double plainly = std::max(suspectLog, suspectDeviations * medium.scatter);
    const double finely = std::max(boundLog, boundDeviations * medium.ownScatter);
    for (const Measured& link : medium.links) {
      if (std::isnan(link.excess)) continue;
      const double suspect = link.holdsUp ? std::min(plainly, finely) : plainly;
      if (link.excess + link.allowance > suspect) judgement.lookSlow.insert(link.link);
      if (!link.accusable) continue;
      const double margin = link.excess / link.threshold;
      if (link.named && !most) {
        judgement.slow.push_back({link.link, std::exp(link.excess + link.allowance),
                                  1 - 0.1 * std::exp(-3 * (margin - 1)), evidenceFor(link, medium, kind, input)});
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
