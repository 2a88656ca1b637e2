// Link tests of the doctor's job: all ranks together, wave after wave.
#pragma once

#include <vector>

#include "doctor/rank_world.h"
#include "validate/wave_queue.h"

namespace falcon::doctor {

/// An empty queue for the sites of this world, for as many cores as the smallest of its hosts has. Collective.
Result<validate::WaveQueue> wavesOf(RankWorld& world);

/// Runs the queue's waves until none is left, and appends what all ranks measured. Collective: everybody hears every
/// wave's measurements, so all ranks take the same next wave out of equal queues and nobody has to be told.
Status runWaves(RankWorld& world, validate::WaveQueue& queue, std::vector<validate::LinkMeasurement>& measured);

}  // namespace falcon::doctor
