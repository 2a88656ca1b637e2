// What one iteration time costs the change-point detector.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <vector>

#include "instrument/change_point.h"

namespace {

enum Kind { calm, jittery, alternating, slowHalfOfTheTime };

std::vector<double> times(Kind kind) {
  std::mt19937 random(1);
  std::normal_distribution<> normal;
  std::vector<double> values;
  for (int i = 0; i < 100'000; ++i) {
    const double slow = kind == slowHalfOfTheTime && i / 100 % 2 == 1 ? 1.5 : 1;
    const double turn = kind == alternating ? (i % 2 == 0 ? 1.2 : 0.8) : 1;
    values.push_back(100 * slow * turn * std::exp((kind == calm ? 0.005 : 0.08) * normal(random)));
  }
  return values;
}

void oneUpdate(benchmark::State& state) {
  const auto values = times(static_cast<Kind>(state.range(0)));
  falcon::instrument::ChangePointDetector detector;
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(detector.add(values[i++ % values.size()]));
}
BENCHMARK(oneUpdate)->ArgName("kind")->DenseRange(calm, slowHalfOfTheTime)->Iterations(100'000);

}  // namespace
