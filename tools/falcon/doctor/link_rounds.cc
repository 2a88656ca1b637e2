#include "doctor/link_rounds.h"

#include <algorithm>
#include <thread>

#include "base/wire.h"
#include "validate/wave.h"

namespace falcon::doctor {
namespace {

constexpr Nanoseconds waveLimit = 10s;

}  // namespace

Result<validate::WaveQueue> wavesOf(RankWorld& world) {
  WireWriter out;
  const auto all = world.network().allGather(out.put(std::thread::hardware_concurrency()).take(), stepLimit);
  if (!all) return all.error();
  unsigned cores = WireReader(all->front()).get<unsigned>();
  for (const std::string& each : *all) cores = std::min(cores, WireReader(each).get<unsigned>());
  std::map<Rank, validate::RankSite> sites;
  for (const validate::RankSite& site : world.sites()) sites.emplace(static_cast<Rank>(sites.size()), site);
  return validate::WaveQueue(std::move(sites), std::max(2, static_cast<int>(cores)), 1);
}

Status runWaves(RankWorld& world, validate::WaveQueue& queue, std::vector<validate::LinkMeasurement>& measured) {
  const auto waiter = transport::makeWaiter();
  const validate::LocalCommunicator local{world.communicator->id(), world.rank(), world.communicator->ports().get()};
  if (auto done = world.network().barrier(stepLimit); !done) return done;
  while (const auto wave = queue.next()) {
    const auto mine =
        validate::runWave(*wave, {&local, 1}, validate::settingsOf(*wave), *waiter, SystemClock::instance(), waveLimit);
    const auto all = world.network().allGather(validate::encode(mine), stepLimit);
    if (!all) return all.error();
    std::vector<validate::LinkMeasurement> ofWave;
    for (const std::string& bytes : *all) {
      const auto measurements = validate::decodeMeasurements(bytes);
      if (!measurements) return measurements.error();
      ofWave.insert(ofWave.end(), measurements->begin(), measurements->end());
    }
    queue.learn(ofWave);
    measured.insert(measured.end(), ofWave.begin(), ofWave.end());
  }
  return {};
}

}  // namespace falcon::doctor
