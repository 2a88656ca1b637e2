// A rank is slowed by its cgroup's quota, or by stopping and continuing it (its process group, where it leads one) in
// turns.
#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "inject/injection.h"
#include "inject/watch_time.h"
#include "machine/cpu_cgroup.h"
#include "machine/processes.h"

namespace falcon::tools {
namespace {

constexpr Nanoseconds rankObservation = 3s;
constexpr double idle = 0.002;            // cores
constexpr Nanoseconds dutyCycle = 100ms;  // as long as a quota's period

Result<std::unique_ptr<Injection>> slowByQuota(Outcome outcome, const RankDescription& rank, ProcessorUse use,
                                               FileDescriptor claim) {
  if (outcome.quota < CpuCgroup::leastQuota)
    return Error::system(
        "rank {} would need a quota of {:.4f} cores, and the kernel takes no less than {}: it used {:.4f} cores; "
        "is the machine too busy?",
        rank.rank, outcome.quota, CpuCgroup::leastQuota, outcome.coresBefore);
  const CpuCgroup cgroup(rank.cgroup);
  const auto quota = cgroup.quota();
  if (!quota) return quota.error();
  const auto before = cgroup.throttling();
  if (!before) return before.error();
  auto guardian = Guardian::start({[cgroup, text = *quota] { (void)cgroup.restoreQuota(text); }, {}, claim.get()});
  if (!guardian) return guardian.error();
  outcome.started = momentNow();
  use.restart();
  if (auto done = cgroup.setQuota(outcome.quota); !done) return done.error();
  return std::make_unique<Injection>(outcome, std::move(*guardian), std::move(claim),
                                     [use, cgroup, before = *before](Outcome& now) {
                                       if (const auto cores = use.cores()) now.coresDuring = *cores;
                                       if (const auto throttling = cgroup.throttling())
                                         now.throttledPeriods = throttling->throttledPeriods - before.throttledPeriods;
                                     });
}

Result<std::unique_ptr<Injection>> slowByStops(Outcome outcome, const RankDescription& rank, ProcessorUse use,
                                               FileDescriptor claim) {
  const double share = std::min(1.0, outcome.quota / outcome.coresBefore);
  const Nanoseconds running(static_cast<std::int64_t>(share * static_cast<double>(dutyCycle.count())));
  const auto stops = makeSharedCounter();
  if (!stops) return stops.error();
  const pid_t group = targetOf(rank.process);
  auto step = [group, running, count = *stops, stopped = false, gone = false]() mutable {
    if (gone) return dutyCycle;
    stopped = !stopped;
    gone = ::kill(group, stopped ? SIGSTOP : SIGCONT) != 0;  // for good: the number may become somebody else's
    if (stopped && !gone) ++*count;
    return stopped ? dutyCycle - running : running;
  };
  outcome.started = momentNow();
  use.restart();
  auto guardian = Guardian::start({[group] { ::kill(group, SIGCONT); }, step, claim.get()});
  if (!guardian) return guardian.error();
  return std::make_unique<Injection>(outcome, std::move(*guardian), std::move(claim),
                                     readUseAnd(&Outcome::stops, use, *stops));
}

}  // namespace

Result<std::unique_ptr<Injection>> slowRank(const JobDescription& job, Rank rank, RankSlowdown slowdown) {
  const auto victim = rankOf(job, rank);
  if (!victim) return victim.error();
  if ((slowdown.quota > 0) == (slowdown.factor > 0))
    return Error::invalidArgument("give either a quota in cores or a factor, above 0");
  auto claim = claimRank(*victim, RankInjection::slowRank);
  if (!claim) return claim.error();

  ProcessorUse use(victim->process);
  if (auto watched = watchFor(rankObservation); !watched) return watched.error();
  Outcome outcome;
  outcome.kind = InjectionKind::slowRank;
  outcome.rank = rank;
  outcome.coresBefore = use.cores().value_or(0);
  if (outcome.coresBefore < idle)
    return Error::system(
        "rank {} (process {}) used {:.4f} cores for {:.0f} s: it is idle or gone, and cannot be slowed", rank,
        victim->process, outcome.coresBefore, seconds(rankObservation));
  outcome.quota = slowdown.quota > 0 ? slowdown.quota : outcome.coresBefore / slowdown.factor;
  return victim->cgroup.empty() ? slowByStops(outcome, *victim, use, std::move(*claim))
                                : slowByQuota(outcome, *victim, use, std::move(*claim));
}

}  // namespace falcon::tools
