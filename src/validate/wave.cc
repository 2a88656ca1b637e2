#include "validate/wave.h"

#include <algorithm>

namespace falcon::validate {

WaveRun::WaveRun(const Wave& wave, std::span<const LocalCommunicator> communicators, const LinkTestSettings& settings,
                 const Clock& clock) {
  for (const WaveLink& link : wave.links) {
    for (const LocalCommunicator& local : communicators) {
      if (local.id != link.communicator || (local.rank != link.from && local.rank != link.to)) continue;
      const bool receives = local.rank == link.to;
      auto end = receives ? startLinkTestReceiver(*local.ports, link, wave.run, settings, clock)
                          : startLinkTestSender(*local.ports, link, wave.run, settings, clock);
      if (end) {
        ends_.push_back(std::move(*end));
      } else if (receives) {
        failed_.push_back({.communicator = link.communicator,
                           .link = link.link,
                           .medium = local.ports->mediumTo(link.from),
                           .status = LinkStatus::failed});
      }
    }
  }
}

bool WaveRun::progress() {
  bool moved = false;
  for (const auto& end : ends_) moved |= end->progress();
  return moved;
}

bool WaveRun::finished() const {
  return std::all_of(ends_.begin(), ends_.end(), [](const auto& end) { return end->finished(); });
}

void WaveRun::giveUp(LinkStatus reason) {
  for (const auto& end : ends_) end->giveUp(reason);
}

std::vector<transport::WaitSource> WaveRun::waitSources() const {
  std::vector<transport::WaitSource> sources;
  for (const auto& end : ends_)
    if (!end->finished()) end->addWaitSources(sources);
  return sources;
}

std::vector<LinkMeasurement> WaveRun::measurements() const {
  std::vector<LinkMeasurement> measurements = failed_;
  for (const auto& end : ends_)
    if (const auto measurement = end->measurement()) measurements.push_back(*measurement);
  return measurements;
}

std::vector<LinkMeasurement> runWave(const Wave& wave, std::span<const LocalCommunicator> communicators,
                                     const LinkTestSettings& settings, transport::Waiter& waiter, const Clock& clock,
                                     Nanoseconds limit, const std::function<bool()>& stop) {
  WaveRun run(wave, communicators, settings, clock);
  const auto deadline = clock.now() + limit;
  while (!run.finished()) {
    waiter.prepare();
    const bool moved = run.progress();
    const auto rest = deadline - clock.now();
    if (stop && stop())
      run.giveUp(LinkStatus::stopped);
    else if (rest <= 0ns)
      run.giveUp(LinkStatus::timeout);
    else if (!moved && !run.finished())
      waiter.wait(run.waitSources(), std::min<Nanoseconds>(rest, 20ms));
  }
  return run.measurements();
}

}  // namespace falcon::validate
