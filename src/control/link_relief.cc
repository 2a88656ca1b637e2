#include "control/link_relief.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace falcon::control {
namespace {

// Of a healthy peer. Less is still a slow link: 1.11 times slower and more.
constexpr double healthyPart = 0.9;
// Peers may have become slow meanwhile: no link is as fast as before at less than twice its slow rate, or, where it was
// slow by less than four times, nearer to that than to its healthy one.
constexpr double leastGain = 2;
// One may fall into a burst of the training, which may be over in the next.
constexpr std::size_t newestProbes = 5;
constexpr std::size_t mostPeers = 2;
// Rates that differ by less count as equal.
constexpr double equalRates = 1.2;
constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

std::vector<HealthyPeer> healthyPeers(const std::map<Link, LinkRate>& healthy, transport::Medium medium,
                                      const Link& slow, double expected, const std::map<Link, double>& moving) {
  using Preference = std::tuple<long, double, bool, Link>;
  std::vector<Preference> preferences;
  const auto isEnd = [&](Rank rank) { return rank == slow.from || rank == slow.to; };
  for (const auto& [link, rate] : healthy) {
    if (rate.medium != medium || !(rate.bytesPerSecond > 0) || !(expected > 0)) continue;
    const double distance = std::abs(std::log(rate.bytesPerSecond / expected));
    const auto carried = moving.find(link);
    preferences.emplace_back(std::lround(distance / std::log(equalRates)),
                             carried == moving.end() ? 0 : carried->second, isEnd(link.from) || isEnd(link.to), link);
  }
  std::sort(preferences.begin(), preferences.end());
  std::vector<HealthyPeer> peers;
  for (const auto& preference : preferences) {
    if (peers.size() == mostPeers) break;
    const Link& link = std::get<Link>(preference);
    peers.push_back({link, healthy.at(link).bytesPerSecond});
  }
  return peers;
}

std::vector<Link> LinkRelief::linksToProbe() const {
  std::vector<Link> links;
  for (const Direction& each : directions_) links.push_back(each.link);
  for (const HealthyPeer& each : peers_) links.push_back(each.link);
  return links;
}

std::optional<double> LinkRelief::best(const Link& link) const {
  std::optional<double> best;
  for (const auto& probe : newest_)
    if (const auto rate = probe.find(link); rate != probe.end()) best = std::max(best.value_or(0), rate->second);
  return best;
}

bool LinkRelief::add(const std::map<Link, double>& rates) {
  newest_.push_back(rates);
  if (newest_.size() > newestProbes) newest_.pop_front();
  if (newest_.size() < newestProbes || directions_.empty()) return false;
  return std::all_of(directions_.begin(), directions_.end(), [&](const Direction& each) { return isHealthy(each); });
}

bool LinkRelief::mayBeHealthy() const {
  return !newest_.empty() && std::all_of(directions_.begin(), directions_.end(), [&](const Direction& each) {
    const auto rate = newest_.back().find(each.link);
    return rate != newest_.back().end() && rate->second >= least(each);
  });
}

double LinkRelief::least(const Direction& direction) {
  return std::min(std::sqrt(direction.slow * direction.healthy), leastGain * direction.slow);
}

bool LinkRelief::isHealthy(const Direction& direction) const {
  const auto rate = best(direction.link);
  if (!rate || !(direction.slow > 0) || !(direction.healthy > direction.slow)) return false;
  if (peers_.empty()) return *rate >= std::sqrt(direction.slow * direction.healthy);
  std::optional<double> expected;
  for (const HealthyPeer& each : peers_) {
    const auto peer = best(each.link);
    if (!peer) continue;
    const bool isFaster = each.bytesPerSecond > equalRates * direction.healthy;
    const double share = isFaster ? direction.healthy / each.bytesPerSecond : 1;
    expected = std::min(expected.value_or(infinite), share * *peer);
  }
  return expected && *rate >= healthyPart * *expected && *rate >= least(direction);
}

}  // namespace falcon::control
