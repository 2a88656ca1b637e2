// The controller's watch for relief: slow ranks by the time of their micro-batches, slow links by probes beside the
// running job.
#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/median.h"
#include "control/controller.h"
#include "control/validation_tests.h"
#include "validate/link_plan.h"

namespace falcon::control {
namespace {

// Beside the training probes take bandwidth: few while all links are as slow as ever, then some in a row.
constexpr Nanoseconds probeInterval = 2s, probeIntervalWhenFaster = 400ms;
constexpr Nanoseconds probePatience = 10s;  // then its answer is lost

/// Whether a rank may use clearly fewer cores than when it was healthy; 0: there is no quota.
bool isTighter(double now, double healthy) {
  return now > 0 && (healthy == 0 || now < 0.95 * healthy);
}

}  // namespace

FailSlow* Controller::find(std::uint64_t id) {
  for (FailSlow& each : failSlows_)
    if (each.id == id) return &each;
  return nullptr;
}

std::vector<FailSlow>::iterator Controller::find(const Culprit& culprit) {
  return std::find_if(failSlows_.begin(), failSlows_.end(),
                      [&](const FailSlow& each) { return isSameCulprit(each.culprit, culprit); });
}

void Controller::watchRelief() {
  if (clock_.now() - lastProbe_ > probePatience) probe_.reset();
  FailSlow* next = nullptr;  // of the links, who was not probed for longest
  bool isFaster = false;     // one of them; those of an interface recover together
  for (FailSlow& each : failSlows_) {
    if (isGone(each.culprit)) {
      // Not at the job's end, when all of them go.
      if (!each.goneSince) each.goneSince = job_.receivedNow();
      if (job_.samplesOfMostSince(*each.goneSince) >= settings_.baselineIterations)
        return relieve(each.id, "has left the job, which goes on");
      continue;
    }
    if (each.culprit.kind != CulpritKind::link) {
      const bool recovered = each.culprit.kind == CulpritKind::rank ? hasRecovered(each) : hostHasRecovered(each);
      if (recovered) return relieve(each.id);
    } else if (each.masked || each.eased || failSlows_.size() > 1) {  // of several the time does not tell either
      isFaster |= each.linkRelief.mayBeHealthy();
      if (!next || each.probed < next->probed) next = &each;
    }
  }
  if (!next || probe_) return;
  if (clock_.now() - lastProbe_ > (isFaster ? probeIntervalWhenFaster : probeInterval)) probe(*next);
}

bool Controller::isGone(const Culprit& culprit) const {
  if (culprit.kind == CulpritKind::rank) return !job_.processOf(culprit.rank);
  if (culprit.kind == CulpritKind::link) return !job_.processOf(culprit.link.from) || !job_.processOf(culprit.link.to);
  return std::none_of(job_.members().begin(), job_.members().end(),
                      [&](const auto& each) { return each.second.identity.host == culprit.host; });
}

bool Controller::hasRecovered(FailSlow& failSlow) {
  const auto process = job_.processOf(failSlow.culprit.rank);
  if (!process) return false;
  const MemberView& member = job_.members()[*process];
  if (member.received == failSlow.watchedSamples || member.recent.empty()) return false;
  failSlow.watchedSamples = member.received;
  // With less to do it may stay below the quota that made it slow, and looks well until it has its share again.
  if (member.healthy && isTighter(member.recent.back().quotaCores, member.healthyQuotaCores)) return false;
  const auto growth = ownTimeGrowth(member, 1);
  return growth && failSlow.watch->add(*growth / usualGrowth(job_, window()));
}

// By what its ranks take for their own work: what made the host slow may be there still and be no harm any more.
bool Controller::hostHasRecovered(FailSlow& failSlow) {
  const auto process = watched();
  if (!process || job_.members()[*process].received == failSlow.watchedSamples) return false;
  failSlow.watchedSamples = job_.members()[*process].received;
  for (const diagnose::HostObservation& host : hostObservations(job_, 1))
    if (host.host == failSlow.culprit.host) return failSlow.watch->add(host.ownGrowth);
  return false;
}

void Controller::probe(FailSlow& failSlow) {
  lastProbe_ = failSlow.probed = clock_.now();
  std::vector<validate::WaveLink> links;
  for (const Link& link : failSlow.linkRelief.linksToProbe()) {
    for (const auto& [id, communicator] : job_.communicators()) {
      const auto from = communicatorRank(communicator, link.from);
      const auto to = communicatorRank(communicator, link.to);
      if (!from || !to || !communicator.hostEngine) continue;
      links.push_back({id, link, *from, *to});
      break;
    }
  }
  const auto waves = validate::planWaves(links, sitesOf(job_), {}, transport::Lane::probe, nextId_);
  if (waves.empty()) return;
  nextId_ = waves.back().run + 1;
  probe_ = {.failSlow = failSlow.id, .waves = {waves.begin(), waves.end()}, .rates = {}};
  sendProbe();
}

// A rank has one link in a wave: the links of a probe follow each other, so that none takes another's bandwidth.
void Controller::sendProbe() {
  const validate::Wave& wave = probe_->waves.front();
  probe_->missing = wave.links.size();
  for (const validate::WaveLink& link : wave.links)
    for (const Rank rank : {link.link.from, link.link.to})
      if (const auto process = job_.processOf(rank))
        outbox_.to(*process, RunWave{wave.run, true, validate::encode(wave)});
}

void Controller::onProbe(const LinkResults& results) {
  const auto measurements = validate::decodeMeasurements(results.measurements);
  if (!measurements || measurements->empty()) return;  // the sending end measures nothing
  for (const validate::LinkMeasurement& each : *measurements)
    if (each.status == validate::LinkStatus::measured && each.bytesPerSecond() > 0)
      probe_->rates[each.link] = each.bytesPerSecond();
  probe_->missing -= std::min(probe_->missing, measurements->size());
  if (probe_->missing > 0) return;
  probe_->waves.pop_front();
  if (!probe_->waves.empty()) return sendProbe();
  const LinkProbe done = std::move(*std::exchange(probe_, std::nullopt));
  FailSlow* failSlow = find(done.failSlow);
  if (failSlow && failSlow->linkRelief.add(done.rates) && !validation_) relieve(failSlow->id);
}

void Controller::relieve(std::uint64_t id, const char* how) {
  const FailSlow failSlow = *find(id);
  std::erase_if(failSlows_, [&](const FailSlow& each) { return each.id == id; });
  emit({.kind = EventKind::relief,
        .beforeMilliseconds = failSlow.slowMilliseconds,
        .afterMilliseconds = measuredMilliseconds(),
        .culprit = failSlow.culprit,
        .text = nameOf(failSlow.culprit) + " " + how});
  mitigation_.relieved(failSlow.culprit);
  lookAgain_ = true;
  // An onset whose only culprit has recovered is over, and has been said to be.
  if (failSlows_.empty() && !onsetOpen_ && !failSlow.masked) slow_ = false;
  if (failSlows_.empty()) slowFromTheStart_ = false;
}

double Controller::measuredMilliseconds() const {
  const auto process = watched();
  return process ? mean(judgedMilliseconds(*process, healthySamplesForRelief), 0) : currentMilliseconds_;
}

}  // namespace falcon::control
