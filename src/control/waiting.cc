#include "control/waiting.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/format.h"
#include "control/decisions.h"

namespace falcon::control {
namespace {

using instrument::Cause;
using instrument::JobTimeline;
using instrument::TimelineCall;

constexpr int fewestIterations = 2;
constexpr double clockTolerance = 0.05;  // of an iteration
constexpr double accusedShare = 0.5;     // of the delay
constexpr double testedShare = 0.3;      // of the delay: beside another cause a group may have no half of it
constexpr double muchUnexplained = 0.3;  // of the delay
// One range stands for a rank's whole growth, which took the lesser part of its time in health: a slow processor slows
// all of its code.
constexpr double nearlyAll = 0.8;
constexpr double lesserPart = 0.5;

using Calls = std::vector<TimelineCall> MemberView::*;

/// The calls of all members in one timeline. There may be hundreds of thousands: they are borrowed, not copied, and go
/// back to their members at the end.
class BorrowedCalls {
 public:
  BorrowedCalls(JobView& job, Calls calls) : job_(job), calls_(calls) {
    for (auto& [process, member] : job_.members())
      timeline_.ranks.push_back({member.identity.jobRank, std::move(member.*calls_)});
  }
  ~BorrowedCalls() {
    auto lent = timeline_.ranks.begin();
    for (auto& [process, member] : job_.members()) member.*calls_ = std::move((lent++)->calls);
  }
  BorrowedCalls(const BorrowedCalls&) = delete;
  BorrowedCalls& operator=(const BorrowedCalls&) = delete;

  /// The time that all ranks have calls of, cut to whole iterations at its end. Null: less than two.
  const JobTimeline* cutTo(double iterationSeconds) {
    timeline_.start = Nanoseconds::min();
    timeline_.end = Nanoseconds::max();
    for (const auto& rank : timeline_.ranks) {
      if (rank.calls.empty()) return nullptr;
      Nanoseconds last{0};
      for (const TimelineCall& call : rank.calls) last = std::max(last, call.leave);
      timeline_.start = std::max(timeline_.start, rank.calls.front().enter);
      timeline_.end = std::min(timeline_.end, last);
    }
    if (timeline_.ranks.empty() || iterationSeconds <= 0 || timeline_.end <= timeline_.start) return nullptr;
    timeline_.iterations = static_cast<int>(std::floor(seconds(timeline_.end - timeline_.start) / iterationSeconds));
    if (timeline_.iterations < fewestIterations) return nullptr;
    timeline_.start = timeline_.end - fromSeconds(timeline_.iterations * iterationSeconds);
    return &timeline_;
  }

 private:
  JobView& job_;
  const Calls calls_;
  JobTimeline timeline_;
};

bool oneRankAProcess(const JobView& job) {
  for (const auto& [id, communicator] : job.communicators()) {
    const std::set<Rank> ranks(communicator.jobRanks.begin(), communicator.jobRanks.end());
    if (ranks.size() != communicator.jobRanks.size() || ranks.contains(-1)) return false;
  }
  return true;
}

std::string nameOf(const Cause& cause, const instrument::CommunicatorNames& names) {
  switch (cause.kind) {
    case Cause::Kind::rank:
      return fmt::format("rank {}{}", cause.rank,
                         cause.oneStretch ? " in one stretch of its code outside of all collectives" : "'s own time");
    case Cause::Kind::link:
      return fmt::format("messages from rank {} to rank {}", cause.link.from, cause.link.to);
    case Cause::Kind::group:
      return fmt::format("collectives among {} after all have come", names.membersOf(cause.communicator));
    case Cause::Kind::everybody:
      return "computing that is slower on all ranks alike";
  }
  return "";
}

std::set<Rank> ranksOf(CommunicatorId id, const JobView& job) {
  const auto communicator = job.communicators().find(id);
  if (communicator == job.communicators().end()) return {};
  return {communicator->second.jobRanks.begin(), communicator->second.jobRanks.end()};
}

/// Who meets in a link or a group; nobody of other causes.
std::set<Rank> ranksOf(const Cause& cause, const JobView& job) {
  if (cause.kind == Cause::Kind::link) return {cause.link.from, cause.link.to};
  return cause.kind == Cause::Kind::group ? ranksOf(cause.communicator, job) : std::set<Rank>();
}

/// Suspected ranks that the links and groups beside them are slow for. A throttled rank stands still inside of calls
/// too: it explains what it touches where it is slower by the whole delay, and where it alone is in all that is slow.
std::set<Rank> wholeCauses(const instrument::Blame& blame, const JobView& job, const instrument::Suspicion& suspicion) {
  std::set<Rank> whole, common;
  int places = 0;
  for (const Cause& cause : blame.causes) {
    std::set<Rank> ranks = ranksOf(cause, job);
    if (ranks.empty() || cause.share < testedShare) continue;
    if (++places > 1) std::erase_if(ranks, [&](Rank rank) { return !common.contains(rank); });
    common = ranks;
  }
  for (const auto& each : suspicion.ranks)
    if (each.explainsAll || (places > 1 && common == std::set<Rank>{each.rank})) whole.insert(each.rank);
  return whole;
}

}  // namespace

std::optional<instrument::Blame> blameOf(JobView& job, const ClockBook& clocks, std::size_t window,
                                         const instrument::BlameRules& rules) {
  if (!oneRankAProcess(job)) return std::nullopt;
  double healthySeconds = 0, slowSeconds = 0;
  for (const auto& [process, member] : job.members()) {
    if (!member.healthy) return std::nullopt;
    healthySeconds = std::max(healthySeconds, member.healthy->duration);
    if (const auto now = JobView::comparableMeans(member, window)) {
      if (std::abs(now->microBatches - member.healthy->microBatches) > 1e-9) return std::nullopt;
      slowSeconds = std::max(slowSeconds, now->duration);
    }
    if (seconds(clocks.errorBound(process)) > clockTolerance * member.healthy->duration) return std::nullopt;
  }
  if (slowSeconds <= 0) return std::nullopt;
  BorrowedCalls healthyCalls(job, &MemberView::healthyCalls), calls(job, &MemberView::calls);
  const JobTimeline* const healthy = healthyCalls.cutTo(healthySeconds);
  const JobTimeline* const now = calls.cutTo(slowSeconds);
  if (!healthy || !now) return std::nullopt;
  return instrument::blame(*healthy, *now, communicatorMembers(job), rules);
}

std::string sentenceOf(const instrument::Blame& blame, const JobView& job) {
  if (blame.causes.empty()) return "the chain of waiting ends at nobody in particular";
  const instrument::CommunicatorNames names = communicatorNames(job);
  std::string text = "the chain of waiting ends at ";
  for (std::size_t i = 0; i < blame.causes.size() && i < 4; ++i)
    text += fmt::format("{}{} ({:.0f} % of the delay)", i == 0 ? "" : ", ", nameOf(blame.causes[i], names),
                        100 * blame.causes[i].share);
  return text;
}

std::string outsideOfCollectives(const JobView& job, Rank rank, std::size_t window, bool oneStretch) {
  const auto process = job.processOf(rank);
  if (!process) return "";
  const MemberView& member = job.members().at(*process);
  const auto now = JobView::comparableMeans(member, window);
  if (!now) return "";
  const double before = member.healthy->outside, grown = now->outside - before;
  const std::string* name = nullptr;
  double least = before * lesserPart;
  for (const auto& [range, seconds] : now->ranges) {
    const auto known = member.healthy->ranges.find(range);
    const double usual = known == member.healthy->ranges.end() ? 0 : known->second;
    const double more = seconds - usual;
    // A range that grew by more than the rank's own time has waiting in it.
    if (grown <= 0 || more < nearlyAll * grown || more * nearlyAll > grown || usual > least) continue;
    least = usual;
    name = &range;
  }
  if (name) {
    return fmt::format(
        "its time goes into \"{}\", outside of all collectives: {:.1f} ms an iteration, {:.1f} ms in health", *name,
        1e3 * now->ranges.at(*name), 1e3 * least);
  }
  if (!oneStretch) return "";
  return "its time goes into one stretch of its code outside of all collectives, as data loading, a checkpoint or "
         "garbage collection do";
}

void suspectWhoWaits(const instrument::Blame& blame, instrument::Suspicion& suspicion) {
  const auto hasHalf = [](const Cause& cause) {
    return cause.share >= accusedShare && (cause.kind == Cause::Kind::link || cause.kind == Cause::Kind::group);
  };
  if (blame.unexplainedShare < muchUnexplained || std::any_of(blame.causes.begin(), blame.causes.end(), hasHalf))
    return;
  for (const instrument::GroupSuspect& group : suspicion.waiting) {
    const auto same = [&](const auto& each) { return each.communicator == group.communicator; };
    if (std::any_of(suspicion.groups.begin(), suspicion.groups.end(), same)) continue;
    suspicion.groups.push_back(group);
  }
}

void followChain(const instrument::Blame& blame, const JobView& job, instrument::Suspicion& suspicion) {
  std::set<Rank> causes, near, accusedOnes;
  std::map<CommunicatorId, double> shares;
  const std::set<Rank> whole = wholeCauses(blame, job, suspicion);
  const auto isWhole = [&](Rank rank) { return whole.contains(rank); };
  std::set<CommunicatorId> explained;
  bool told = false;
  for (const Cause& cause : blame.causes) {
    if (const auto ranks = ranksOf(cause, job); std::any_of(ranks.begin(), ranks.end(), isWhole)) {
      explained.insert(cause.communicator);
      continue;
    }
    causes.insert(cause.rank);
    shares[cause.communicator] += cause.share;
    const bool isRank = cause.kind == Cause::Kind::rank, accused = cause.share >= accusedShare;
    if (cause.kind == Cause::Kind::everybody || cause.share < (isRank ? accusedShare : testedShare)) continue;
    told = told || accused;
    if (isRank) {
      accusedOnes.insert(cause.rank);
      const auto same = [&](const auto& each) { return each.rank == cause.rank; };
      if (std::none_of(suspicion.ranks.begin(), suspicion.ranks.end(), same))
        suspicion.ranks.push_back({cause.rank, cause.growth});
      continue;
    }
    const auto same = [&](const auto& each) { return each.communicator == cause.communicator; };
    if (std::none_of(suspicion.groups.begin(), suspicion.groups.end(), same))
      suspicion.groups.push_back({cause.communicator, cause.growth, cause.link});
    const std::set<Rank> members = ranksOf(cause.communicator, job);
    near.insert(members.begin(), members.end());
    if (accused) accusedOnes.insert(members.begin(), members.end());
  }
  std::erase_if(suspicion.groups, [&](const auto& each) {
    const bool byOthers = each.slowest.from >= 0 && !isWhole(each.slowest.from) && !isWhole(each.slowest.to);
    return explained.contains(each.communicator) && !byOthers && !shares.contains(each.communicator);
  });
  if (!told) return;
  std::erase_if(suspicion.ranks,
                [&](const auto& each) { return !causes.contains(each.rank) && !near.contains(each.rank); });
  // What little a group of an accused one has of the delay is explained by that one.
  const auto hasCauseOfItsOwn = [&](const instrument::GroupSuspect& group) {
    return std::any_of(blame.causes.begin(), blame.causes.end(), [&](const Cause& cause) {
      return cause.kind == Cause::Kind::link && cause.communicator == group.communicator &&
             !accusedOnes.contains(cause.link.from) && !accusedOnes.contains(cause.link.to);
    });
  };
  const auto isExplained = [&](const instrument::GroupSuspect& group) {
    if (shares[group.communicator] >= testedShare || hasCauseOfItsOwn(group)) return false;
    const std::set<Rank> members = ranksOf(group.communicator, job);
    return std::any_of(members.begin(), members.end(), [&](Rank rank) { return accusedOnes.contains(rank); });
  };
  std::erase_if(suspicion.groups,
                [&](const auto& each) { return !shares.contains(each.communicator) || isExplained(each); });
}

}  // namespace falcon::control
