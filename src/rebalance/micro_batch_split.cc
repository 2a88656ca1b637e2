#include "rebalance/micro_batch_split.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <queue>

namespace falcon::rebalance {
namespace {

/// Micro-batches are handed out in units of rules.multiple.
class Allocation {
 public:
  Allocation(std::span<const Replica> replicas, const SplitRules& rules)
      : replicas_(replicas), unit_(rules.multiple), total_(rules.total / rules.multiple) {
    for (const Replica& each : replicas) {
      least_.push_back((std::int64_t{each.least} + unit_ - 1) / unit_);
      most_.push_back(std::min<std::int64_t>(each.most / unit_, total_));
    }
  }

  Status check(const SplitRules& rules) const;
  std::vector<int> split();

 private:
  /// When the replica is done with that many units.
  double doneAt(std::size_t replica, std::int64_t units) const { return replicas_[replica].secondsWith(units * unit_); }
  /// The most units with which it is done by `limit`, at least what it must take.
  std::int64_t unitsBy(double limit, std::size_t replica) const;
  std::vector<std::int64_t> unitsBy(double limit) const;
  double longest(std::span<const std::int64_t> units) const;
  std::vector<std::int64_t> greedy() const;
  bool isNowKnown() const;
  std::vector<std::int64_t> closestToNow(std::span<const std::int64_t> most) const;

  const std::span<const Replica> replicas_;
  const std::int64_t unit_, total_;
  std::vector<std::int64_t> least_, most_;
};

std::int64_t sumOf(std::span<const std::int64_t> units) {
  return std::accumulate(units.begin(), units.end(), std::int64_t{0});
}

Status Allocation::check(const SplitRules& rules) const {
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    const Replica& each = replicas_[i];
    if (!(each.secondsPerMicroBatch > 0) || !std::isfinite(each.secondsPerMicroBatch))
      return Error::invalidArgument("a replica's time for one micro-batch is {} s; it must be positive",
                                    each.secondsPerMicroBatch);
    if (!(each.fillSeconds >= 0) || !std::isfinite(each.fillSeconds))
      return Error::invalidArgument("a replica's pipeline fills in {} s; that cannot be negative", each.fillSeconds);
    if (each.least < 0 || least_[i] > most_[i])
      return Error::invalidArgument("replica {} is to take {} to {} of {} micro-batches in multiples of {}", i,
                                    each.least, each.most, rules.total, rules.multiple);
  }
  if (rules.total % rules.multiple != 0)
    return Error::invalidArgument("{} micro-batches are no multiple of {}", rules.total, rules.multiple);
  if (const auto fewest = sumOf(least_) * unit_; fewest > rules.total)
    return Error::invalidArgument("{} micro-batches cannot give each of {} replicas what it must have, {} in all",
                                  rules.total, replicas_.size(), fewest);
  if (const auto room = sumOf(most_) * unit_; room < rules.total)
    return Error::invalidArgument("{} micro-batches do not fit: the {} replicas take {} at most", rules.total,
                                  replicas_.size(), room);
  return {};
}

std::int64_t Allocation::unitsBy(double limit, std::size_t replica) const {
  const std::int64_t least = least_[replica], most = most_[replica];
  const double each = replicas_[replica].secondsPerMicroBatch * static_cast<double>(unit_);
  const double fit = (limit - replicas_[replica].fillSeconds) / each;
  auto units = fit >= static_cast<double>(most) ? most : std::max(least, static_cast<std::int64_t>(fit));
  // The division rounds; what counts is the comparison.
  while (units < most && doneAt(replica, units + 1) <= limit) ++units;
  while (units > least && doneAt(replica, units) > limit) --units;
  return units;
}

std::vector<std::int64_t> Allocation::unitsBy(double limit) const {
  std::vector<std::int64_t> units(replicas_.size());
  for (std::size_t i = 0; i < units.size(); ++i) units[i] = unitsBy(limit, i);
  return units;
}

double Allocation::longest(std::span<const std::int64_t> units) const {
  double longest = 0;
  for (std::size_t i = 0; i < units.size(); ++i) longest = std::max(longest, doneAt(i, units[i]));
  return longest;
}

std::vector<std::int64_t> Allocation::greedy() const {
  // All steps of the greedy choice that end by some time are taken at once: the last such time is bisected.
  double tooEarly = 0, enough = longest(most_);
  for (int halving = 0; halving < 64; ++halving) {
    const double middle = tooEarly + (enough - tooEarly) / 2;
    (sumOf(unitsBy(middle)) <= total_ ? tooEarly : enough) = middle;
  }
  std::vector<std::int64_t> units = unitsBy(tooEarly);
  using Candidate = std::pair<double, std::size_t>;  // when it would be done with one more; replica
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> next;
  const auto offer = [&](std::size_t replica) {
    if (units[replica] < most_[replica]) next.emplace(doneAt(replica, units[replica] + 1), replica);
  };
  for (std::size_t i = 0; i < units.size(); ++i) offer(i);
  for (std::int64_t left = total_ - sumOf(units); left > 0; --left) {
    const std::size_t replica = next.top().second;
    next.pop();
    ++units[replica];
    offer(replica);
  }
  return units;
}

bool Allocation::isNowKnown() const {
  std::int64_t sum = 0;
  for (const Replica& each : replicas_) {
    if (each.now <= 0 || each.now % unit_ != 0) return false;
    sum += each.now / unit_;
  }
  return sum == total_;
}

/// With at most `most` each: who has to change does, and of the others as few as can make up for it.
std::vector<std::int64_t> Allocation::closestToNow(std::span<const std::int64_t> most) const {
  std::vector<std::int64_t> units(replicas_.size());
  const auto now = [&](std::size_t replica) { return replicas_[replica].now / unit_; };
  for (std::size_t i = 0; i < units.size(); ++i) units[i] = std::clamp(now(i), least_[i], most[i]);
  const std::int64_t missing = total_ - sumOf(units);
  const auto room = [&](std::size_t i) { return missing > 0 ? most[i] - units[i] : units[i] - least_[i]; };
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
    const bool oneChanges = units[one] != now(one), otherChanges = units[other] != now(other);
    return oneChanges != otherChanges ? oneChanges : room(one) > room(other);
  });
  std::int64_t left = std::abs(missing);
  for (const std::size_t replica : order) {
    const std::int64_t taken = std::min(left, room(replica));
    units[replica] += missing > 0 ? taken : -taken;
    left -= taken;
  }
  return units;
}

std::vector<int> Allocation::split() {
  std::vector<std::int64_t> units = greedy();
  if (isNowKnown()) units = closestToNow(unitsBy(longest(units)));
  std::vector<int> split;
  for (const std::int64_t each : units) split.push_back(static_cast<int>(each * unit_));
  return split;
}

}  // namespace

Result<std::vector<int>> splitMicroBatches(std::span<const Replica> replicas, const SplitRules& rules) {
  if (replicas.empty()) return Error::invalidArgument("there is no replica to give micro-batches to");
  if (rules.multiple < 1)
    return Error::invalidArgument("micro-batches in multiples of {}: it must be 1 or more", rules.multiple);
  Allocation allocation(replicas, rules);
  if (const Status possible = allocation.check(rules); !possible) return possible.error();
  return allocation.split();
}

double makespan(std::span<const Replica> replicas, std::span<const int> microBatches) {
  double longest = 0;
  for (std::size_t i = 0; i < replicas.size(); ++i)
    longest = std::max(longest, replicas[i].secondsWith(microBatches[i]));
  return longest;
}

std::vector<int> equalSplit(int replicas, int total, int multiple) {
  const int units = total / multiple;
  std::vector<int> split(static_cast<std::size_t>(replicas), units / replicas * multiple);
  for (int i = 0; i < units % replicas; ++i) split[static_cast<std::size_t>(i)] += multiple;
  return split;
}

}  // namespace falcon::rebalance
