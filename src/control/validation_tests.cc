#include "control/validation_tests.h"

#include <algorithm>
#include <cmath>

#include "control/network_conditions.h"
#include "control/tested_groups.h"

namespace falcon::control {
namespace {

validate::CauseEvidence evidenceOf(const ComputeResult& result) {
  validate::CauseEvidence evidence;
  const auto share = [&](double seconds) {
    return seconds >= 0 && result.wallSeconds > 0 ? seconds / result.wallSeconds : diagnose::unknown;
  };
  evidence.throttled = share(result.throttledSeconds);
  evidence.waited = share(result.runQueueSeconds);
  evidence.stolen = share(result.stolenSeconds);
  evidence.ran = share(result.processorSeconds);
  if (result.processors > 0) evidence.processors = result.processors;
  if (result.thermalThrottles >= 0) evidence.thermalThrottles = result.thermalThrottles;
  if (result.power >= 0) evidence.power = result.power;
  return evidence;
}

}  // namespace

diagnose::LinkUse linkUseOf(const JobView& job, const std::vector<validate::TestedGroup>& groups, std::size_t window) {
  auto [moving, grown] = linkTimes(job);
  return {.onlyCompared = onlyCompared(groups),
          .moving = std::move(moving),
          .grown = std::move(grown),
          .longerIteration = delayOf(job, window)};
}

std::map<Rank, validate::RankSite> sitesOf(const JobView& job) {
  std::map<Rank, validate::RankSite> sites;
  for (const auto& [process, member] : job.members()) {
    validate::RankSite& site = sites[member.identity.jobRank];
    site.address = member.identity.address;
    site.host = member.identity.host;
  }
  for (const auto& [id, communicator] : job.communicators())
    for (std::size_t i = 0; i < communicator.jobRanks.size() && i < communicator.nodes.size(); ++i)
      sites[communicator.jobRanks[i]].node = communicator.nodes[i];
  return sites;
}

std::set<ProcessId> computeTargets(const JobView& job, const diagnose::Suspicion& suspects) {
  std::set<Rank> suspected;
  for (const diagnose::RankSuspect& each : suspects.ranks) suspected.insert(each.rank);
  std::set<Rank> ranks = suspected;
  const std::size_t all = job.members().size();
  for (const auto& [id, communicator] : job.communicators()) {
    const bool suspicious = std::any_of(suspects.groups.begin(), suspects.groups.end(),
                                        [&, at = id](const auto& group) { return group.communicator == at; });
    const bool near = communicator.jobRanks.size() < all &&
                      std::any_of(suspected.begin(), suspected.end(), [&, &group = communicator](Rank rank) {
                        return communicatorRank(group, rank).has_value();
                      });
    if (suspicious || near) ranks.insert(communicator.jobRanks.begin(), communicator.jobRanks.end());
  }
  std::set<ProcessId> targets;
  for (const Rank rank : ranks)
    if (const auto process = job.processOf(rank)) targets.insert(*process);
  // A comparison needs peers: with fewer than three the whole job is tested.
  return targets.size() < 3 ? job.allProcesses() : targets;
}

diagnose::Measurements measurementsOf(const JobView& job, const ValidationInput& input, const ValidationTests& tests) {
  diagnose::Measurements measured;
  // Of the job: each is a walk over all ranks.
  const double delay = delayOf(job, input.window), usual = usualGrowth(job, input.window, OwnTime::alsoInProfile);
  for (const auto& [process, member] : job.members()) {
    diagnose::RankFigures figures;
    figures.rank = member.identity.jobRank;
    figures.ownTimeGrowth = ownTimeGrowth(member, input.window, OwnTime::alsoInProfile).value_or(diagnose::unknown);
    // Who asks for an examination wants to know of everybody.
    if (!input.wantsExamination)
      figures.shareOfDelay = shareOfDelay(member, input.window, delay, usual).value_or(diagnose::unknown);
    const auto score = tests.compute.find(process);
    if (score != tests.compute.end() && score->second.problem.empty()) {
      figures.score = score->second.gigaflopsPerSecond;
      if (score->second.throttledSeconds >= 0)
        figures.throttledShare = score->second.throttledSeconds / computeSpanSeconds;
      if (score->second.memoryRate > 0) figures.memoryRate = score->second.memoryRate;
      figures.evidence = evidenceOf(score->second);
    }
    measured.ranks.push_back(figures);
    if (score != tests.compute.end() && !score->second.gpu.empty())
      if (auto sample = validate::decodeGpuSample(score->second.gpu))
        measured.gpus.emplace(figures.rank, std::move(*sample));
  }
  measured.links = tests.links;
  measured.use = tests.use;
  measured.knownLinkRates = input.knownLinkRates;
  measured.network = networkConditions(job);
  measured.sites = sitesOf(job);
  return measured;
}

validate::Examination examinationOf(const JobView& job, const ValidationInput& input, const ValidationTests& tests,
                                    double heldSeconds) {
  const auto sites = sitesOf(job);
  validate::Examination examination{.heldSeconds = heldSeconds, .ranks = {}, .links = tests.links};
  std::map<Rank, validate::ExaminedRank> ranks;
  for (const diagnose::RankFigures& figures : measurementsOf(job, input, tests).ranks) {
    const auto site = sites.find(figures.rank);
    ranks[figures.rank] = {.rank = figures.rank,
                           .site = site == sites.end() ? validate::RankSite() : site->second,
                           .gigaflops = figures.score,
                           .memoryRate = figures.memoryRate,
                           .evidence = figures.evidence};
  }
  for (auto& [rank, examined] : ranks) examination.ranks.push_back(std::move(examined));
  return examination;
}

}  // namespace falcon::control
