#include "control/waiting.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "control/decisions.h"

namespace falcon::control {
namespace {

using instrument::DelaySource;
using instrument::JobTimeline;
using instrument::TimelineCall;

constexpr int fewestIterations = 2;
constexpr double clockTolerance = 0.05;  // of an iteration
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

  /// The time that all ranks have calls of, cut to whole iterations at its end.
  Result<const JobTimeline*> cutTo(double iterationSeconds, const char* when) {
    timeline_.start = Nanoseconds::min();
    timeline_.end = Nanoseconds::max();
    for (const auto& rank : timeline_.ranks) {
      if (rank.calls.empty()) return Error::internal("no call of rank {} was timed {}", rank.rank, when);
      Nanoseconds last{0};
      for (const TimelineCall& call : rank.calls) last = std::max(last, call.leave);
      timeline_.start = std::max(timeline_.start, rank.calls.front().enter);
      timeline_.end = std::min(timeline_.end, last);
    }
    const bool any = !timeline_.ranks.empty() && iterationSeconds > 0 && timeline_.end > timeline_.start;
    const double iterations = any ? seconds(timeline_.end - timeline_.start) / iterationSeconds : 0;
    if (iterations < fewestIterations)
      return Error::internal("all ranks' calls were timed over {:.1f} iterations only {}", iterations, when);
    timeline_.iterations = static_cast<int>(iterations);
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

std::string nameOf(const DelaySource& source, const instrument::CommunicatorNames& names) {
  switch (source.kind) {
    case DelaySource::Kind::rank:
      return fmt::format("rank {}{}", source.rank,
                         source.oneStretch ? " in one stretch of its code outside of all collectives" : "'s own time");
    case DelaySource::Kind::link:
      return fmt::format("messages from rank {} to rank {}", source.link.from, source.link.to);
    case DelaySource::Kind::group:
      return fmt::format("collectives among {} after all have come", names.membersOf(source.communicator));
    case DelaySource::Kind::everybody:
      return "computing that is slower on all ranks alike";
  }
  return "";
}

}  // namespace

Result<instrument::Blame> blameOf(JobView& job, const ClockBook& clocks, std::size_t window,
                                  const instrument::BlameRules& rules) {
  if (!oneRankAProcess(job)) return Error::internal("a process has several ranks");
  double healthySeconds = 0, slowSeconds = 0;
  for (const auto& [process, member] : job.members()) {
    const Rank rank = member.identity.jobRank;
    if (!member.healthy) return Error::internal("rank {} has no healthy baseline", rank);
    healthySeconds = std::max(healthySeconds, member.healthy->duration);
    if (const auto now = JobView::comparableMeans(member, window)) {
      if (std::abs(now->microBatches - member.healthy->microBatches) > 1e-9)
        return Error::internal("the split of the micro-batches is another than in health");
      slowSeconds = std::max(slowSeconds, now->duration);
    }
    const double unsure = seconds(clocks.errorBound(process));
    if (unsure > clockTolerance * member.healthy->duration)
      return Error::internal("the clock of rank {} is known to {:.1f} ms only", rank, unsure * 1e3);
    if (!member.healthyCallsOnJobsClock || !member.callsOnJobsClock)
      return Error::internal("the clock of rank {}'s device could not be read well enough", rank);
  }
  if (slowSeconds <= 0) return Error::internal("no rank calls as it did in health");
  BorrowedCalls healthyCalls(job, &MemberView::healthyCalls), calls(job, &MemberView::calls);
  const auto healthy = healthyCalls.cutTo(healthySeconds, "in health");
  if (!healthy) return healthy.error();
  const auto now = calls.cutTo(slowSeconds, "now");
  if (!now) return now.error();
  return instrument::blame(**healthy, **now, communicatorMembers(job), rules);
}

std::string sentenceOf(const instrument::Blame& blame, const JobView& job) {
  if (blame.sources.empty()) return "the chain of waiting ends at nobody in particular";
  const instrument::CommunicatorNames names = communicatorNames(job);
  std::string text = "the chain of waiting ends at ";
  for (std::size_t i = 0; i < blame.sources.size() && i < 4; ++i)
    text += fmt::format("{}{} ({:.0f} % of the delay)", i == 0 ? "" : ", ", nameOf(blame.sources[i], names),
                        100 * blame.sources[i].share);
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

}  // namespace falcon::control
