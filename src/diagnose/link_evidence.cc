#include "diagnose/link_evidence.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/format.h"
#include "base/median.h"
#include "validate/robust_statistics.h"

namespace falcon::diagnose {
namespace {

// Standard deviation of a median of a few over that of their mean.
constexpr double ofAMedian = 1.2;

std::string rateText(double bytesPerSecond) {
  return fmt::format("{:.{}f} MB/s", bytesPerSecond / 1e6, bytesPerSecond < 1e8 ? 1 : 0);
}

std::string timesText(int count) {
  return count == 1 ? "once" : count == 2 ? "twice" : fmt::format("{} times", count);
}

}  // namespace

LinkEvidence::LinkEvidence(const Measurements& measured, const std::set<Rank>& slowRanks, const Thresholds& thresholds)
    : measured_(measured), thresholds_(thresholds) {
  collect();
  for (auto& [kind, medium] : media_) compare(kind, slowRanks);
  observe();
}

void LinkEvidence::collect() {
  for (const validate::LinkMeasurement& measurement : measured_.links) {
    Measured& link = links_[measurement.link];
    ++link.asked;
    if (measurement.status != validate::LinkStatus::measured || !(measurement.bytesPerSecond() > 0)) continue;
    const double slowness = -std::log(measurement.bytesPerSecond());
    link.medium = measurement.medium;
    link.best = std::min(link.best, slowness);
    if (measurement.disturbed()) continue;
    link.each.push_back(slowness);
    ++link.count;
  }
  for (auto& [id, link] : links_) {
    link.slowness = link.count >= thresholds_.fewestMeasurements ? median(link.each) : link.best;
    if (!link.isAnswered()) {
      silent_.push_back(id);
      continue;
    }
    media_[link.medium].links.push_back(id);
    if (const auto before = measured_.knownLinkRates.find(id);
        before != measured_.knownLinkRates.end() && before->second > 0)
      link.ownExcess = link.slowness + std::log(before->second);
    const auto grown = measured_.use.grown.find(id);
    link.holdsUp = grown != measured_.use.grown.end() &&
                   grown->second >= thresholds_.leastPartOfLink * measured_.use.longerIteration;
  }
}

/// How far equal links lie apart, and how far the measurements of one: the larger. A slow link is only ever slower, so
/// of two middle values the lower one counts: up to half of the links may be slow.
double LinkEvidence::ownScatterOf(const Medium& medium, const std::vector<double>& slowness) const {
  const double centre = lowerMedian(slowness, 0);
  std::vector<double> distances;
  for (const double value : slowness) distances.push_back(std::abs(value - centre));
  const double between = validate::madToDeviation * lowerMedian(std::move(distances), 0);
  double squares = 0;
  int repeats = 0;
  for (const Link& id : medium.links) {
    const Measured& link = links_.at(id);
    const double mean = std::accumulate(link.each.begin(), link.each.end(), 0.0) / std::max(link.count, 1);
    for (const double value : link.each) squares += (value - mean) * (value - mean);
    repeats += std::max(link.count - 1, 0);
  }
  const double within = repeats > 0 ? std::sqrt(squares / repeats) : 0;
  const int degrees = static_cast<int>(slowness.size()) - 1 + repeats;
  if (degrees < thresholds_.fewestDegrees) return unknown;
  return std::max({thresholds_.resolution, between, within}) * (1 + thresholds_.byChance / degrees);
}

void LinkEvidence::compare(transport::Medium kind, const std::set<Rank>& slowRanks) {
  Medium& medium = media_.at(kind);
  std::vector<double> slowness, own;
  for (const Link& id : medium.links) {
    if (slowRanks.contains(id.from) || slowRanks.contains(id.to)) continue;
    const Measured& link = links_.at(id);
    slowness.push_back(link.first());
    if (!std::isnan(link.ownExcess)) own.push_back(link.ownExcess);
  }
  medium.peers = slowness.size();
  const bool comparable = slowness.size() >= thresholds_.fewestPeers, drifts = own.size() >= thresholds_.fewestPeers;
  double scatter = thresholds_.scatterOfLinks;
  if (comparable) {
    const double ownScatter = ownScatterOf(medium, slowness);
    std::ranges::sort(slowness);
    slowness = validate::healthyOf(std::move(slowness), std::fmin(thresholds_.scatterOfLinks, ownScatter));
    medium.halved = slowness.size() < medium.peers;
    medium.centre = median(slowness);
    scatter = std::fmin(validate::robustDeviation(slowness, thresholds_.scatterOfLinks, thresholds_.priorOfLinks),
                        ownScatter);
  }
  // Two noisy figures, now and then, so sqrt(2) times the scatter.
  const double usualGrowth = std::numbers::sqrt2 * thresholds_.scatterOfLinks;
  std::ranges::sort(own);
  if (drifts) own = validate::healthyOf(std::move(own), usualGrowth);
  const double drift = drifts ? median(own) : 0;
  const double growthScatter =
      drifts ? validate::robustDeviation(own, usualGrowth, thresholds_.priorOfLinks) : usualGrowth;
  bool unknownOnes = false;
  for (const Link& id : medium.links) {
    Measured& link = links_.at(id);
    const double roots =
        std::sqrt(std::max(link.count, 1)) / (link.count >= thresholds_.fewestMeasurements ? ofAMedian : 1);
    const double growth = link.ownExcess - drift;
    const bool historyKnown = !std::isnan(growth);
    link.scatter = scatter;
    // Where the middle of the peers is, is known no better.
    const double ofCentre = comparable ? ofAMedian * ofAMedian / static_cast<double>(slowness.size()) : 0;
    link.sigma = scatter * std::sqrt(1 / (roots * roots) + ofCentre);
    if (comparable) {
      link.value = link.slowness - medium.centre;
      // Always slower than others: known, and no fault.
      if (historyKnown && growth < thresholds_.historyChanged) link.value = std::min(link.value, growth);
    }
    // Its own history decides where there are no peers; beside them only if it is the same for all the others.
    const double growthSigma = growthScatter / roots;
    const bool clearer = comparable && drifts && growth / growthSigma > link.value / link.sigma;
    if (historyKnown && (!comparable || clearer)) {
      link.value = growth;
      link.sigma = growthSigma;
      link.scatter = growthScatter;
    }
    unknownOnes = unknownOnes || std::isnan(link.value);
  }
  if (unknownOnes && remark_.empty()) remark_ = fmt::format("too few links to compare ({})", medium.links.size());
}

void LinkEvidence::observe() {
  const LinkUse& use = measured_.use;
  for (const auto& [id, link] : links_) {
    if (!link.isAnswered()) continue;
    const bool overNetwork = link.medium == transport::Medium::socket;
    if (!std::isnan(link.value))
      observations_.push_back({.quantity = Quantity::linkTest,
                               .link = id,
                               .value = link.value,
                               .least = link.value - (link.slowness - link.best),
                               .sigma = link.sigma,
                               .overNetwork = overNetwork,
                               .settled = link.count >= thresholds_.fewestMeasurements,
                               .aloneFrom = media_.at(link.medium).halved ? infinitelySlow : thresholds_.aloneLink});
    const auto moving = use.moving.find(id);
    const bool isNothing =
        !overNetwork && moving != use.moving.end() && moving->second < thresholds_.leastUnderWay * use.longerIteration;
    if (!link.holdsUp && !isNothing) continue;
    observations_.push_back({.quantity = Quantity::transferTime,
                             .link = id,
                             .value = link.holdsUp ? std::numeric_limits<double>::infinity() : 0,
                             .sigma = thresholds_.scatterOfUnderWay,
                             .overNetwork = overNetwork});
  }
}

std::vector<Candidate> LinkEvidence::candidates() const {
  std::vector<Candidate> all;
  // Ranks that share an address share its interface.
  std::map<std::string, std::set<Rank>> interfaces;
  std::map<Rank, std::string> interfaceOf;
  for (const auto& [id, link] : links_) {
    if (!link.isAnswered()) continue;
    all.push_back({.kind = CandidateKind::link, .link = id, .accusable = isAccusable(id)});
    if (link.medium != transport::Medium::socket) continue;
    for (const Rank rank : {id.from, id.to}) {
      const auto place = measured_.sites.find(rank);
      const bool known = place != measured_.sites.end() && !place->second.address.empty();
      interfaceOf[rank] = known ? place->second.address : fmt::format("rank {}", rank);
      interfaces[interfaceOf[rank]].insert(rank);
    }
  }
  std::map<std::string, int> leaving, comingIn;
  std::map<std::string, bool> waitedFor, waitedForIn;
  for (const auto& [id, link] : links_) {
    if (!link.isAnswered() || link.medium != transport::Medium::socket) continue;
    const std::string &from = interfaceOf[id.from], &to = interfaceOf[id.to];
    if (from == to) continue;
    ++leaving[from], ++comingIn[to];
    waitedFor[from] |= isAccusable(id), waitedForIn[to] |= isAccusable(id);
  }
  const auto add = [&](CandidateKind kind, const std::string& interface, bool accusable) {
    const std::set<Rank>& ranks = interfaces[interface];
    all.push_back({.kind = kind, .ranks = {ranks.begin(), ranks.end()}, .accusable = accusable});
  };
  for (const auto& [interface, count] : leaving)
    if (count > 1) add(CandidateKind::interfaceOut, interface, waitedFor[interface]);
  for (const auto& [interface, count] : comingIn)
    if (count > 1) add(CandidateKind::interfaceIn, interface, waitedForIn[interface]);
  return all;
}

std::string LinkEvidence::textOf(const Link& id) const {
  const auto found = links_.find(id);
  if (found == links_.end() || !found->second.isAnswered()) return {};
  const Measured& link = found->second;
  const Medium& medium = media_.at(link.medium);
  std::string text = rateText(std::exp(-link.slowness));
  if (medium.peers >= thresholds_.fewestPeers)
    text += fmt::format(" against a median of {} over {} {} links", rateText(std::exp(-medium.centre)), medium.peers,
                        link.medium == transport::Medium::socket ? "socket" : "shared-memory");
  if (const auto before = measured_.knownLinkRates.find(id); before != measured_.knownLinkRates.end())
    text += fmt::format(", {} when it was healthy", rateText(before->second));
  text += ", measured " + timesText(link.count);
  if (link.holdsUp)
    text += fmt::format(
        "; in the job its bytes were under way for {:.0f} ms an iteration more, of {:.0f} ms that it "
        "takes longer",
        measured_.use.grown.at(id) * 1e3, measured_.use.longerIteration * 1e3);
  if (const auto network = measured_.network.find(id); network != measured_.network.end())
    text += "; " + sentenceOf(network->second);
  return text;
}

bool LinkEvidence::looksSlow(const Link& id, double explained) const {
  const auto found = links_.find(id);
  if (found == links_.end() || std::isnan(found->second.value)) return false;
  const Measured& link = found->second;
  const double plainly = std::max(thresholds_.lookSlow, thresholds_.lookSlowDeviations * link.scatter);
  const double finely = std::max(thresholds_.leastBound, thresholds_.boundDeviations * link.scatter);
  return link.value - explained > (link.holdsUp ? std::min(plainly, finely) : plainly);
}

bool LinkEvidence::mayBeSlow(const Link& id, double explained) const {
  const auto found = links_.find(id);
  if (found == links_.end() || std::isnan(found->second.value)) return false;
  return looksSlow(id, explained) ||
         (found->second.holdsUp && found->second.value - explained > thresholds_.leastBound);
}

std::set<Link> LinkEvidence::lookSlow() const {
  std::set<Link> slow;
  for (const auto& [id, link] : links_)
    if (looksSlow(id, 0)) slow.insert(id);
  return slow;
}

bool LinkEvidence::mayAskAgain(const Link& link) const {
  const auto found = links_.find(link);
  if (found == links_.end() || !found->second.isAnswered()) return false;
  return found->second.asked <
         (found->second.holdsUp ? thresholds_.mostAttemptsWhereItHoldsUp : thresholds_.mostAttempts);
}

bool LinkEvidence::holdsUp(const Link& link) const {
  const auto found = links_.find(link);
  return found != links_.end() && found->second.holdsUp;
}

std::size_t LinkEvidence::peersOf(const Link& link) const {
  return media_.at(mediumOf(link)).links.size();
}

transport::Medium LinkEvidence::mediumOf(const Link& link) const {
  return links_.at(link).medium;
}

std::string LinkEvidence::slowest() const {
  std::pair<const Link, Measured> const* slowest = nullptr;
  for (const auto& each : links_)
    if (isAccusable(each.first) && each.second.value > thresholds_.leastBound &&
        (!slowest || each.second.value > slowest->second.value))
      slowest = &each;
  if (!slowest) return {};
  const auto& [id, link] = *slowest;
  const double enough = std::max(link.holdsUp ? thresholds_.leastOfLink : thresholds_.aloneLink,
                                 std::sqrt(thresholds_.gain) * link.sigma);
  std::string text = fmt::format("the slowest link is {} -> {}: {}", id.from, id.to, textOf(id));
  if (link.value < enough)
    text += fmt::format(", {:.2f} times slower, and {:.2f} would be enough", std::exp(link.value), std::exp(enough));
  if (!link.holdsUp) text += ", and nothing shows that the job waits for it";
  return text;
}

}  // namespace falcon::diagnose
