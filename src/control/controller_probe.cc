// The controller's probes: whether a link that was routed around has recovered, beside the running job.
#include "control/controller.h"
#include "control/validation_tests.h"
#include "validate/link_plan.h"

namespace falcon::control {

void Controller::probe(Active& active) {
  lastProbe_ = clock_.now();
  for (const auto& [id, communicator] : job_.communicators()) {
    const auto from = communicatorRank(communicator, active.culprit.link.from);
    const auto to = communicatorRank(communicator, active.culprit.link.to);
    if (!from || !to || !communicator.hostEngine) continue;
    const std::vector<validate::WaveLink> links = {{id, active.culprit.link, *from, *to}};
    for (const validate::Wave& wave : validate::planWaves(links, placesOf(job_), {}, transport::Lane::probe, nextId_)) {
      nextId_ = wave.run + 1;
      probes_[wave.run] = static_cast<std::size_t>(&active - active_.data());
      for (const Rank rank : {active.culprit.link.from, active.culprit.link.to})
        if (const auto process = job_.processOf(rank))
          outbox_.to(*process, RunWave{wave.run, true, validate::encode(wave)});
    }
    return;
  }
}

void Controller::onProbe(const LinkResults& results) {
  const auto measurements = validate::decodeMeasurements(results.measurements);
  if (!measurements || measurements->empty()) return;  // the sending end measures nothing
  const std::size_t index = probes_.at(results.wave);
  probes_.erase(results.wave);
  if (index >= active_.size() || active_[index].relieved) return;
  const validate::LinkMeasurement& link = measurements->front();
  if (link.status != validate::LinkStatus::measured || link.bytesPerSecond() <= 0) return;
  if (active_[index].watch->add(1 / link.bytesPerSecond()) && phase_ == Phase::tracking) relieve(index);
}

}  // namespace falcon::control
