#include "control/likely_culprit.h"

#include "base/format.h"
#include "control/decisions.h"
#include "control/waiting.h"

namespace falcon::control {
namespace {

constexpr double half = 0.5;  // of the delay

LikelyCulprit likely(Culprit culprit, const std::string& why) {
  const std::string name = nameOf(culprit);
  return {std::move(culprit), fmt::format("likely {}: {}", name, why)};
}

std::optional<LikelyCulprit> byHosts(const JobView& job) {
  for (const diagnose::HostObservation& host : hostObservations(job, JobView::keptSamples)) {
    const auto found = diagnose::explanationOf(host);
    if (!found || !found->isCulprit()) continue;
    Culprit culprit{.kind = CulpritKind::host};
    culprit.host = found->host;
    return likely(std::move(culprit), found->evidence);
  }
  return std::nullopt;
}

std::optional<LikelyCulprit> bySuspicion(const JobView& job, double limit) {
  // One cause must have half of the delay; what it grew by itself may be little, averaged over so many iterations.
  const instrument::Suspicion suspicion = suspicionOf(
      job, JobView::keptSamples, {.computeGrowth = 1 + limit / 2, .leastShare = limit / 2, .leastPart = half});
  const std::string reason = instrument::reasonFor(suspicion, namedCommunicators(job));
  if (suspicion.ranks.size() == 1) return likely({CulpritKind::rank, suspicion.ranks.front().rank, {}, false}, reason);
  if (!suspicion.ranks.empty() || suspicion.groups.size() != 1) return std::nullopt;
  const Link& slowest = suspicion.groups.front().slowest;
  if (slowest.from < 0) return LikelyCulprit{{}, "likely " + reason};
  return likely({CulpritKind::link, -1, slowest, false}, reason);
}

std::optional<LikelyCulprit> byChain(JobView& job, const ClockBook& clocks, double limit) {
  const auto blame =
      blameOf(job, clocks, JobView::keptSamples, {.leastShare = limit / 2, .leastGrowth = 1 + limit / 2});
  if (!blame || blame->causes.empty() || blame->causes.front().share < half) return std::nullopt;
  const instrument::Cause& cause = blame->causes.front();
  const std::string reason = sentenceOf(*blame, job);
  if (cause.kind == instrument::Cause::Kind::rank) return likely({CulpritKind::rank, cause.rank, {}, false}, reason);
  if (cause.kind == instrument::Cause::Kind::link) return likely({CulpritKind::link, -1, cause.link, false}, reason);
  return LikelyCulprit{{}, reason};
}

}  // namespace

LikelyCulprit likelyCulprit(JobView& job, const ClockBook& clocks, double limit) {
  if (auto host = byHosts(job)) return *host;
  if (auto suspect = bySuspicion(job, limit)) return *suspect;
  if (auto source = byChain(job, clocks, limit)) return *source;
  return {{}, "nobody has half of the delay"};
}

}  // namespace falcon::control
