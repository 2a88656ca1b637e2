// The controller's diagnosis: profiling after an onset, the suspicion, the validation and what it names.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "base/format.h"
#include "base/median.h"
#include "control/controller.h"
#include "control/tested_groups.h"
#include "control/waiting.h"

namespace falcon::control {
namespace {

constexpr Nanoseconds collectingPatience = 2s;
// Of a link that nothing is known of but how slow it is now: what its healthy rate is taken to be, against that.
constexpr double unknownLinkGain = 4;
// Above it a rank would be suspected again, nearly: that is no relief, however slow it was.
constexpr double mostHealthyGrowth = 1.3;

}  // namespace

void Controller::startProfiling() {
  for (auto& [id, member] : job_.members()) {
    member.transfers = {};
    member.calls.clear();
  }
  mark_ = job_.receivedNow();
  phaseStarted_ = clock_.now();
  ++attempts_;
  quiet_ = minorProfile_ = false;
  phase_ = Phase::profiling;
  outbox_.toAll(profilingOrder());
}

void Controller::endProfiling() {
  // A rank that has lost the thread is not waited for: twice as many iterations of the others tell that it has.
  const bool enough =
      job_.samplesSince(mark_) >= iterationsToProfile() || job_.samplesOfMostSince(mark_) >= 2 * iterationsToProfile();
  const double patience = std::max(10.0, 20 * currentMilliseconds_ * 1e-3);
  if (!enough && seconds(clock_.now() - phaseStarted_) < patience) return;
  transfersDue_ = job_.allProcesses();
  outbox_.toAll(SetProfiling{false});
  phase_ = Phase::collecting;
  phaseStarted_ = clock_.now();
}

// A member that does not answer is judged by its samples alone.
void Controller::collect() {
  if (!transfersDue_.empty() && clock_.now() - phaseStarted_ < collectingPatience) return;
  phase_ = Phase::tracking;
  phaseStarted_ = clock_.now();
  suspect();
}

// A host whose processors others take slows all of its ranks: no test tells more than the kernel's account of them, and
// the job is not held for it. What is left beyond that must be a fail-slow by itself to be looked for; where nobody is
// found it was the hosts, too, if they explain most of it: of ranks that lose their processors by turns all wait for
// the one that does. Where nobody takes them and all ranks run for longer, that explains their own time, and no link.
Controller::ByHosts Controller::explainedByHosts() {
  const auto since = std::clamp<std::int64_t>(detectorSamples_ - changedAt_, settings_.profilingIterations,
                                              settings_.baselineIterations);
  const auto newest = static_cast<std::size_t>(since);
  std::vector<diagnose::HostExplanation> explanations;
  for (const diagnose::HostObservation& host : hostObservations(job_, newest))
    if (auto found = diagnose::explanationOf(host)) explanations.push_back(std::move(*found));
  if (explanations.empty()) return {};
  ByHosts found;
  std::copy_if(explanations.begin(), explanations.end(), std::back_inserter(found.culprits),
               [](const auto& each) { return each.isCulprit(); });
  const double growth = iterationGrowth(job_, newest), left = diagnose::unexplainedGrowth(growth, explanations);
  found.isAll = left < onsetGrowth();
  if (!found.isAll && left - 1 > (growth - 1) / 2) found.culprits.clear();
  if (found.isAll && found.culprits.empty())
    for (const diagnose::HostExplanation& each : explanations)
      found.ownTime += fmt::format("{}on host {} {}", found.ownTime.empty() ? "" : "; ", each.host, each.evidence);
  return found;
}

void Controller::name(const std::vector<diagnose::HostExplanation>& hosts) {
  sayOnset();
  for (const diagnose::HostExplanation& each : hosts) name(each);
  onsetOpen_ = false;
}

// A small slowness of nobody in particular is looked at again before it is said.
bool Controller::waitsWhetherItLasts() {
  // Iterations. What a young job is held for healthy by may have been a quiet moment of the machine.
  constexpr int lasting = 16, young = 48, lastingInYoungJob = 64;
  if (!onsetNotSaid_ || detectorSamples_ - changedAt_ >= (changedAt_ < young ? lastingInYoungJob : lasting))
    return false;
  --attempts_;
  return true;
}

void Controller::suspect() {
  if (std::exchange(minorProfile_, false)) return sayMinor();
  const ByHosts hosts = explainedByHosts();
  if (hosts.isAll && !hosts.culprits.empty()) return name(hosts.culprits);
  diagnose::SeenInProfile seen = seenInProfile(job_, window(), quiet_ ? culprits() : std::vector<Culprit>());
  std::string chain;
  oneStretch_.clear();
  if (auto blame = blameOf(job_, clocks_, window(), {.leastShare = leastShare()}); !blame) {
    chain = "; the chain of waiting is not known: " + blame.error().message();
  } else {
    seen.chain = std::move(*blame);
    for (const auto& source : seen.chain->sources)
      if (source.kind == instrument::DelaySource::Kind::rank && source.oneStretch) oneStretch_.insert(source.rank);
    chain = "; " + sentenceOf(*seen.chain, job_);
  }
  diagnose::Suspicion suspects = diagnose::suspect(seen, {.leastShare = leastShare()});
  if (quiet_ && (!isSlow() || suspects.empty())) return;  // who recovered was all, or it is known
  suspects.reason += chain;
  if (!hosts.ownTime.empty()) {
    suspects.ranks.clear();
    std::erase_if(suspects.groups, [](const auto& each) { return each.waitsOnly || each.slowest.from < 0; });
  }
  if (suspects.empty()) {
    if (!hosts.culprits.empty()) return name(hosts.culprits);
    if (attempts_ > attemptsPerOnset) return;  // it has been said
    if (waitsWhetherItLasts()) return;
    sayOnset();
    emit({.kind = EventKind::inconclusive,
          .ranges = rangeGrowths(job_, window()),
          .text = hosts.ownTime.empty() ? "slower, but no rank or group stands out: " + suspects.reason
                                        : "slower, and nobody stands out: " + hosts.ownTime});
    return;
  }
  sayOnset();
  if (settings_.validate && backOff_.holds(suspects, clock_.now())) return waitForBackOff(suspects);
  emit({.kind = EventKind::suspicion,
        .suspects = suspectsOf(suspects, job_),
        .ranges = rangeGrowths(job_, window()),
        .text = suspects.reason});
  if (settings_.validate) return validate(suspects);
  onsetOpen_ = false;  // this is all that will be known
}

// Looked at again until the suspicion is stronger, or another one, or has waited long enough.
void Controller::waitForBackOff(const diagnose::Suspicion& suspects) {
  if (!quiet_) --attempts_;
  if (std::exchange(backOffSaid_, true)) return;
  emit({.kind = EventKind::inconclusive,
        .text = "no validation yet: the last one found nobody, and the job is not held again so soon for the same "
                "suspicion: " +
                suspects.reason});
}

void Controller::validate(const diagnose::Suspicion& suspects) {
  const bool first = traps_ == 0 || quiet_;
  if (!budget_.allows(clock_.now(), first)) {
    emit({.kind = EventKind::inconclusive,
          .text = fmt::format("no validation: NCCL_FALCON_TRAP_BUDGET={} percent of the run time is used up",
                              budget_.percent())});
    return;
  }
  ++traps_;
  tested_ = suspects;
  ValidationInput input;
  input.id = nextId_;
  nextId_ += 1000;  // a validation numbers its waves after its own id
  input.suspects = suspects;
  input.limit = budget_.limit(clock_.now(), first, settings_.trapTimeout);
  input.entryLimit = settings_.trapEntry;
  input.known = culprits();
  input.window = window();
  input.knownLinkRates = linkRates_;
  input.waiting = linksWaiting_;
  emit({.kind = EventKind::trapClosed, .text = "the job is held to test this: " + suspects.reason});
  validation_ = startValidation(input, job_, clock_, outbox_);
  phase_ = Phase::validating;
}

void Controller::conclude() {
  if (examining_) return endExamination();
  const Validation::Outcome outcome = validation_->outcome();
  validation_.reset();
  phase_ = Phase::tracking;
  phaseStarted_ = clock_.now();
  const Verdict& verdict = outcome.verdict;
  linksWaiting_ = {outcome.leftOut.begin(), outcome.leftOut.end()};
  const bool conclusive = verdict.certain && !verdict.culprits.empty();
  budget_.spent(fromSeconds(outcome.trapSeconds));
  backOffSaid_ = false;
  if (conclusive)
    backOff_.foundSomebody();
  else
    backOff_.foundNobody(tested_, clock_.now());
  emit({.kind = outcome.trapTimedOut ? EventKind::trapTimedOut : EventKind::trapOpened,
        .durationSeconds = outcome.trapSeconds,
        .text = outcome.trapTimedOut
                    ? fmt::format("the job was held for {:.2f} s, and not all of it came: it is let go unharmed",
                                  outcome.trapSeconds)
                    : fmt::format("the job was held for {:.2f} s ({:.2f} s until all were)", outcome.trapSeconds,
                                  outcome.closingSeconds)});
  if (!conclusive) {
    emit({.kind = EventKind::inconclusive,
          .confidence = verdict.confidence,
          .observed = verdict.observed,
          .text = "not certain: " + verdict.evidence});
    return;
  }
  for (const auto& [link, rate] : outcome.linkRates)
    if (!looksSlow(link, outcome)) linkRates_[link] = rate.bytesPerSecond;
  onsetOpen_ = false;
  const int before = named_;
  for (const Culprit& culprit : verdict.culprits) name(culprit, outcome);
  // Of several causes the tests may have found the plainest only.
  if (named_ > before) lookAgain_ = true;
  if (named_ == before)
    emit({.kind = EventKind::inconclusive,
          .confidence = verdict.confidence,
          .culprit = verdict.culprits.front(),
          .observed = verdict.observed,
          .text = "nobody is slow who was not known to be: " + verdict.evidence});
}

// Also what was named before and was not tested to be slow again.
bool Controller::looksSlow(const Link& link, const Validation::Outcome& outcome) const {
  const Culprit tested{CulpritKind::link, -1, link, false};
  const auto accused = [&](const Culprit& culprit) { return isSameCulprit(culprit, tested); };
  const auto& named = outcome.verdict.culprits;
  return outcome.lookSlow.contains(link) || std::any_of(named.begin(), named.end(), accused) ||
         std::any_of(failSlows_.begin(), failSlows_.end(), [&](const FailSlow& each) { return accused(each.culprit); });
}

// Where to look for it: processes, hosts, and the addresses of their data.
std::string Controller::whereabouts(const Culprit& culprit) const {
  std::string text;
  if (culprit.kind != CulpritKind::rank && culprit.kind != CulpritKind::link) return text;
  const bool isRank = culprit.kind == CulpritKind::rank;
  for (const Rank rank : isRank ? std::vector{culprit.rank} : std::vector{culprit.link.from, culprit.link.to}) {
    const auto process = job_.processOf(rank);
    if (!process) continue;
    const Introduce& identity = job_.members().at(*process).identity;
    text += fmt::format("; rank {}: process {} on {}", rank, identity.pid, identity.host);
    if (!identity.address.empty()) text += ", " + identity.address;
  }
  return text;
}

void Controller::name(const Culprit& culprit, const Validation::Outcome& outcome) {
  const auto known = find(culprit);
  const bool news = known == failSlows_.end() || culprit.bothWays > known->culprit.bothWays ||
                    (!known->culprit.bothWays && culprit.link != known->culprit.link);
  if (!news) {
    // It became slower still: the plan against it may no longer fit.
    known->slowMilliseconds = currentMilliseconds_;
    measureFigures(*known, outcome);
    mitigation_.changed();
    return;
  }
  ++named_;
  std::vector<RangeGrowth> ranges;
  std::string where, evidence = outcome.verdict.evidence;
  if (const auto own = outcome.verdict.evidenceOf.find(culprit); own != outcome.verdict.evidenceOf.end())
    evidence = own->second;
  if (culprit.kind == CulpritKind::rank) {
    ranges = rangeGrowths(job_, window());
    std::erase_if(ranges, [&](const RangeGrowth& each) { return each.rank != culprit.rank; });
    where = outsideOfCollectives(job_, culprit.rank, window(), oneStretch_.contains(culprit.rank));
  }
  emit(
      {.kind = EventKind::verdict,
       .beforeMilliseconds = healthyMilliseconds_,
       .afterMilliseconds = currentMilliseconds_,
       .confidence = outcome.verdict.confidence,
       .culprit = culprit,
       .ranges = std::move(ranges),
       .observed = outcome.verdict.observed,
       .text = nameOf(culprit) + " is slow: " + evidence + (where.empty() ? "" : "; " + where) + whereabouts(culprit)});
  FailSlow failSlow = newFailSlow(culprit);
  if (known != failSlows_.end()) {  // a link that was slow one way: now it is both
    failSlow.culprit.bothWays = true;
    failSlows_.erase(known);
  }
  measureFigures(failSlow, outcome);
  failSlows_.push_back(std::move(failSlow));
  mitigation_.named();
}

FailSlow Controller::newFailSlow(const Culprit& culprit) {
  return {.id = nextId_++,
          .culprit = culprit,
          .healthyMilliseconds = healthyMilliseconds_,
          .slowMilliseconds = currentMilliseconds_,
          .lossSeconds = lossSeconds_,
          .masked = !slow_};
}

void Controller::name(const diagnose::HostExplanation& host) {
  Culprit culprit{.kind = CulpritKind::host};
  culprit.host = host.host;
  auto failSlow = find(culprit);
  if (failSlow == failSlows_.end()) {
    ++named_;
    emit({.kind = EventKind::verdict,
          .beforeMilliseconds = healthyMilliseconds_,
          .afterMilliseconds = currentMilliseconds_,
          .confidence = 1,
          .culprit = culprit,
          .text = fmt::format("{} is slow: {}; end it, move it, or move the job", nameOf(culprit), host.evidence)});
    failSlow = failSlows_.insert(failSlows_.end(), newFailSlow(culprit));
  }
  failSlow->slowMilliseconds = currentMilliseconds_;
  failSlow->watch.emplace(1, host.growth, healthySamplesForRelief);
}

// What tells of this culprit's relief, healthy and now.
void Controller::measureFigures(FailSlow& failSlow, const Validation::Outcome& outcome) const {
  if (failSlow.culprit.kind == CulpritKind::link) {
    failSlow.linkRelief = reliefOf(failSlow.culprit, outcome);
    return;
  }
  double slow = 0;
  if (const auto process = job_.processOf(failSlow.culprit.rank)) {
    // Against its peers: a machine that gets busier or calmer meanwhile is nobody's relief.
    const auto growth = ownTimeGrowth(job_.members().at(*process), window());
    slow = growth.value_or(0) / usualGrowth(job_, window());
  }
  failSlow.watch.emplace(1, slow, healthySamplesForRelief, mostHealthyGrowth);
}

LinkRelief Controller::reliefOf(const Culprit& culprit, const Validation::Outcome& outcome) const {
  std::map<Link, LinkRate> healthy;
  for (const auto& [link, rate] : outcome.linkRates)
    if (!looksSlow(link, outcome)) healthy[link] = rate;
  std::vector<Link> slow{culprit.link};
  if (culprit.bothWays) slow.push_back({culprit.link.to, culprit.link.from});
  std::vector<LinkRelief::Direction> directions;
  std::vector<HealthyPeer> peers;
  for (const Link& link : slow) {
    const auto found = outcome.linkRates.find(link);
    if (found == outcome.linkRates.end() || !(found->second.bytesPerSecond > 0)) continue;
    const LinkRate& now = found->second;
    std::vector<double> usual;
    for (const auto& [other, rate] : healthy)
      if (rate.medium == now.medium) usual.push_back(rate.bytesPerSecond);
    const auto before = linkRates_.find(link);
    const double expected = before != linkRates_.end() ? before->second
                            : !usual.empty()           ? median(std::move(usual))
                                                       : unknownLinkGain * now.bytesPerSecond;
    directions.push_back({link, now.bytesPerSecond, expected});
    if (peers.empty()) peers = healthyPeers(healthy, now.medium, link, expected, linkTimes(job_).moving);
  }
  return {std::move(directions), std::move(peers)};
}

std::vector<Culprit> Controller::culprits() const {
  std::vector<Culprit> culprits;
  for (const FailSlow& each : failSlows_) culprits.push_back(each.culprit);
  return culprits;
}

}  // namespace falcon::control
