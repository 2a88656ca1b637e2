// The waves of a validation, one after the other: how many links run together depends on how fast they turned out to
// be.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "validate/link_plan.h"

namespace falcon::validate {

/// Fast links need their hosts' cores, so few run at the same time; many slow ones run on the same cores. The first
/// wave of each medium is a careful one; then the fastest link seen tells. Waves that were larger than their links'
/// speed allowed are run again in smaller parts. Pure; deterministic: ranks that are told the same are asked for the
/// same.
class WaveQueue {
 public:
  /// @param sites       by job rank
  /// @param endsPerHost  how many ends of fast links a host's cores carry at the same time
  WaveQueue(std::map<Rank, RankSite> sites, int endsPerHost, std::uint64_t firstRun)
      : sites_(std::move(sites)), endsPerHost_(endsPerHost), nextRun_(firstRun) {}

  /// Queues links behind those that wait already.
  void add(std::span<const WaveLink> links);
  /// The same for links that are measured again: with whole rounds, however many there were before.
  void addAgain(std::span<const WaveLink> links);
  /// The same for links in the order in which they are wanted: in rounds, of each rank one pair, both ways. All rounds
  /// but the first are run only if there is time.
  void addInRounds(std::span<const WaveLink> links);
  bool nextIsIfTime() const { return !queue_.empty() && queue_.front().ifTime; }
  /// Forgets those of them that have not been handed out. Which.
  std::vector<Link> leaveOut();
  /// The next wave to run; nothing where none is left.
  std::optional<Wave> next();
  /// What the last wave's links measured; an empty one is a wave without answers.
  void learn(std::span<const LinkMeasurement> measurements);

  /// All that were handed out.
  const std::vector<Wave>& waves() const { return waves_; }
  std::uint64_t nextRun() const { return nextRun_; }
  std::size_t passes() const { return passes_; }

 private:
  int endsAt(double bytesPerSecond) const;

  const std::map<Rank, RankSite> sites_;
  const int endsPerHost_;
  std::uint64_t nextRun_;
  std::deque<LinkPass> queue_;
  std::size_t passes_ = 0;
  std::vector<Wave> waves_;
  bool overSockets_ = false;        ///< the last wave
  bool ifTime_ = false;             ///< the last wave
  bool again_ = false;              ///< the last wave
  bool crowded_ = false;            ///< the last wave had more ends on a host than fast links may have
  std::map<bool, double> fastest_;  ///< bytes per second, by whether over sockets
};

}  // namespace falcon::validate
