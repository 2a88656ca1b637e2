#include "control/drain.h"

#include <algorithm>

namespace falcon::control {
namespace {

constexpr std::size_t rememberedGone = 64;  // communicators

void atLeast(std::uint64_t& value, std::uint64_t other) {
  value = std::max(value, other);
}

/// A rank has entered fewer than `target` of what the key counts, in which it takes part.
bool isShortOf(std::uint64_t target, const CountKey& key, Rank rank, const CallCounts& counts) {
  if (key.from < 0) return counts.collectives() < target;
  const auto isRank = [&](Rank peer) { return peer >= 0 && peer < counts.size(); };
  if (!isRank(key.from) || !isRank(key.to)) return false;
  return (key.from == rank && counts.sentTo(key.to) < target) ||
         (key.to == rank && counts.receivedFrom(key.from) < target);
}

}  // namespace

void DrainGate::add(Part part, const CallCounts& counts) {
  members_.push_back({part, &counts});
}

void DrainGate::remove(Part part) {
  const auto found =
      std::find_if(members_.begin(), members_.end(), [&](const Member& member) { return member.part == part; });
  if (found == members_.end()) return;
  const Member left = *found;
  members_.erase(found);  // first: what follows may find no memory
  addCounts(left, gone_.emplace_back());
  if (gone_.size() > rememberedGone) gone_.pop_front();
}

std::vector<DrainGate::Part> DrainGate::parts() const {
  std::vector<Part> parts;
  for (const Member& member : members_) parts.push_back(member.part);
  return parts;
}

bool DrainGate::isBelow() const {
  return std::any_of(targets_.begin(), targets_.end(), [this](const auto& target) {
    return std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
      return member.part.communicator == target.first.communicator &&
             isShortOf(target.second, target.first, member.part.rank, *member.counts);
    });
  });
}

bool DrainGate::isInside() const {
  return std::any_of(members_.begin(), members_.end(), [](const Member& member) { return member.counts->inside(); });
}

void DrainGate::order(std::uint64_t version, const Counts& targets) {
  if (version <= version_) return;
  version_ = version;
  for (const auto& [key, count] : targets) atLeast(targets_[key], count);
}

void DrainGate::lift() {
  version_ = 0;
  targets_.clear();
}

void DrainGate::addCounts(const Member& member, Counts& sums) {
  const auto& [communicator, rank] = member.part;
  const auto note = [&](const CountKey& key, std::uint64_t count) {
    if (count > 0) atLeast(sums[key], count);
  };
  note({communicator, -1, -1}, member.counts->collectives());
  for (Rank peer = 0; peer < member.counts->size(); ++peer) {
    note({communicator, rank, peer}, member.counts->sentTo(peer));
    note({communicator, peer, rank}, member.counts->receivedFrom(peer));
  }
}

Counts DrainGate::entered() const {
  Counts sums;
  for (const Counts& gone : gone_)
    for (const auto& [key, count] : gone) atLeast(sums[key], count);
  for (const Member& member : members_) addCounts(member, sums);
  return sums;
}

bool Drain::handle(bootstrap::ProcessId from, const DrainGate::Report& report) {
  if (!members_.contains(from)) return false;
  bool rose = false;
  for (const auto& [key, count] : report.entered) {
    std::uint64_t& target = targets_[key];
    rose |= count > target;
    atLeast(target, count);
  }
  if (rose)
    askAgain();
  else if (report.version == version_ && !report.below)
    settled_.insert(from);
  else
    settled_.erase(from);
  return rose;
}

void Drain::askAgain() {
  ++version_;
  settled_.clear();
}

void Drain::leave(bootstrap::ProcessId member) {
  members_.erase(member);
  settled_.erase(member);
}

}  // namespace falcon::control
