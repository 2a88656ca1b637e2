#include "validate/wave_queue.h"

#include <algorithm>

namespace falcon::validate {
namespace {

// What one end may move without being noticed on a core that others use: a tenth of what a pair of processes moved
// through sockets with a core for each (2.3 GB/s measured).
constexpr double easyBytesPerSecond = 250e6;

// A ring's, both ways. Of as many a trap has time for rounds that are longer than what 60 more processes cost.
constexpr std::size_t fewPasses = 4;

}  // namespace

void WaveQueue::add(std::span<const WaveLink> links) {
  for (LinkPass& pass : passesOf(links, sites_)) {
    queue_.push_back(std::move(pass));
    ++passes_;
  }
}

void WaveQueue::addAgain(std::span<const WaveLink> links) {
  for (LinkPass& pass : passesOf(links, sites_)) {
    pass.again = true;
    queue_.push_back(std::move(pass));
  }
}

// Each round has a rank's next pair: the colouring of all of them together would not begin with the most wanted.
void WaveQueue::addInRounds(std::span<const WaveLink> links) {
  std::vector<WaveLink> rest(links.begin(), links.end());
  for (bool first = true; !rest.empty(); first = false) {
    std::map<Rank, Rank> peers;
    std::vector<WaveLink> round, later;
    for (const WaveLink& link : rest) {
      const auto [from, newFrom] = peers.try_emplace(link.link.from, link.link.to);
      const auto [to, newTo] = peers.try_emplace(link.link.to, link.link.from);
      const bool fits = from->second == link.link.to && to->second == link.link.from;
      // Who is not taken after all must not keep others out.
      if (!fits && newFrom) peers.erase(link.link.from);
      if (!fits && newTo) peers.erase(link.link.to);
      (fits ? round : later).push_back(link);
    }
    const std::size_t before = queue_.size();
    add(round);
    for (std::size_t i = before; i < queue_.size(); ++i) queue_[i].ifTime = !first;
    rest = std::move(later);
  }
}

std::vector<Link> WaveQueue::leaveOut() {
  std::vector<Link> left;
  for (const LinkPass& pass : queue_)
    for (const WaveLink& link : pass.links)
      if (pass.ifTime) left.push_back(link.link);
  std::erase_if(queue_, [](const LinkPass& pass) { return pass.ifTime; });
  return left;
}

std::optional<Wave> WaveQueue::next() {
  if (queue_.empty()) return std::nullopt;
  LinkPass& pass = queue_.front();
  overSockets_ = pass.overSockets;
  ifTime_ = pass.ifTime;
  again_ = pass.again;
  const auto known = fastest_.find(overSockets_);
  const int ends = known == fastest_.end() ? endsPerHost_ : endsAt(known->second);
  crowded_ = ends > endsPerHost_;
  waves_.push_back({.run = nextRun_++,
                    .lane = transport::Lane::test,
                    .links = takeWave(pass.links, sites_, ends),
                    .brief = passes_ > fewPasses && !pass.again});
  if (pass.links.empty()) queue_.pop_front();
  return waves_.back();
}

void WaveQueue::learn(std::span<const LinkMeasurement> measurements) {
  double fastest = 0;
  for (const LinkMeasurement& each : measurements)
    if (each.status == LinkStatus::measured) fastest = std::max(fastest, each.bytesPerSecond());
  if (fastest <= 0 || waves_.empty()) return;
  double& known = fastest_[overSockets_];
  const bool tooMany = crowded_ && 2 * endsAt(fastest) < endsAt(known);
  known = std::max(known, fastest);
  // It measured the cores: the same links in waves that they carry. They are disjoint, so one pass.
  if (tooMany)
    queue_.push_front({.overSockets = overSockets_, .links = waves_.back().links, .ifTime = ifTime_, .again = again_});
}

int WaveQueue::endsAt(double bytesPerSecond) const {
  const double ends = endsPerHost_ * std::max(1.0, easyBytesPerSecond / bytesPerSecond);
  return static_cast<int>(std::min(ends, 1e6));
}

}  // namespace falcon::validate
