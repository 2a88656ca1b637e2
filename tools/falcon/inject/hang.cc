// A rank is hung by stopping it: it is there, answers nobody, and uses no processor.
#include <signal.h>

#include <cerrno>
#include <cstring>

#include "inject/injection.h"
#include "inject/watch_time.h"
#include "machine/processes.h"

namespace falcon::tools {

namespace {
constexpr Nanoseconds hangObservation = 1s;
}

Result<std::unique_ptr<Injection>> hangRank(const JobDescription& job, Rank rank) {
  const auto victim = rankOf(job, rank);
  if (!victim) return victim.error();
  auto claim = claimRank(*victim, RankInjection::hang);
  if (!claim) return claim.error();
  const pid_t process = victim->process;
  if (isStopped(process))
    return Error::system("rank {} (process {}) is stopped already, by somebody else, who would find it continued", rank,
                         process);
  ProcessorUse use(process);
  if (auto watched = watchFor(hangObservation); !watched) return watched.error();
  Outcome outcome;
  outcome.kind = InjectionKind::hang;
  outcome.rank = rank;
  outcome.coresBefore = use.cores().value_or(0);
  const pid_t target = targetOf(process);
  auto guardian = Guardian::start({[target] { ::kill(target, SIGCONT); }, {}, claim->get()});
  if (!guardian) return guardian.error();
  outcome.started = momentNow();
  if (::kill(target, SIGSTOP) != 0)
    return Error::system("rank {} (process {}) cannot be stopped: {}", rank, process, std::strerror(errno));
  use.restart();
  return std::make_unique<Injection>(outcome, std::move(*guardian), std::move(*claim), [use, process](Outcome& now) {
    if (const auto cores = use.cores()) now.coresDuring = *cores;
    if (isStopped(process)) now.stops = 1;
  });
}

}  // namespace falcon::tools
