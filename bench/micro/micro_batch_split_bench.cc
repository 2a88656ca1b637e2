// Falcon's table 6: how long it takes to split micro-batches over 16 to 512 data-parallel groups, and over 10,000.
// Their quadratic programme took 0.01 s (64 groups), 0.11 s (128), 6.78 s (256) and 35.93 s (512).
#include <benchmark/benchmark.h>

#include <random>

#include "rebalance/micro_batch_split.h"

namespace falcon::rebalance {
namespace {

void splitOverGroups(benchmark::State& state) {
  const auto groups = static_cast<int>(state.range(0));
  std::mt19937 random(1);
  std::vector<Replica> replicas(static_cast<std::size_t>(groups));
  for (Replica& each : replicas)
    each = {.secondsPerMicroBatch = std::uniform_real_distribution<>(0.5, 3)(random), .now = 16};
  for (auto _ : state) benchmark::DoNotOptimize(splitMicroBatches(replicas, {.total = 16 * groups}));
}
BENCHMARK(splitOverGroups)->RangeMultiplier(2)->Range(16, 512)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace falcon::rebalance
