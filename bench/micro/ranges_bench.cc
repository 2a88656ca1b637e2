// What a range costs the application: Falcon's own, and NVTX's as the library takes them (src/api/nvtx_injection.cc):
// recorded, muted since they come too often, and too deep.
#include <benchmark/benchmark.h>

#include "control/ranges.h"

namespace falcon {
namespace {

using control::Ranges;
using instrument::FoldedName;
using instrument::RangeName;

class WithLog {
 public:
  WithLog() : log_(std::move(*instrument::RangeLog::create("", 0))) { Ranges::useLog(log_.get()); }
  ~WithLog() { Ranges::useLog(nullptr); }

 private:
  std::unique_ptr<instrument::RangeLog> log_;
};

void pushAndPop(const char* text) {
  Ranges::push(nullptr, Ranges::isShallow() ? RangeName::of(FoldedName(text)) : nullptr);
  benchmark::ClobberMemory();
  Ranges::pop(nullptr);
}

void falconsOwn(benchmark::State& state) {
  const WithLog log;
  for (auto _ : state) {
    Ranges::begin("forward of a layer");
    benchmark::ClobberMemory();
    static_cast<void>(Ranges::end());
  }
}
BENCHMARK(falconsOwn);

// As many as are recorded before the name is muted, each time with a new log.
void nvtxRecorded(benchmark::State& state) {
  constexpr int recorded = instrument::RangeDensity::mostOfName / 2;
  for (auto _ : state) {
    state.PauseTiming();
    const WithLog log;
    state.ResumeTiming();
    for (int i = 0; i < recorded; ++i) pushAndPop("forward of a layer");
  }
  state.SetItemsProcessed(state.iterations() * recorded);
}
BENCHMARK(nvtxRecorded)->Iterations(1);

void nvtxMuted(benchmark::State& state) {
  const WithLog log;
  for (std::uint32_t i = 0; i < 2 * instrument::RangeDensity::mostOfName; ++i) pushAndPop("forward of a layer");
  for (auto _ : state) pushAndPop("forward of a layer");
}
BENCHMARK(nvtxMuted);

void nvtxTooDeep(benchmark::State& state) {
  const WithLog log;
  for (int i = 0; i < Ranges::levels; ++i) Ranges::push(nullptr, nullptr);
  for (auto _ : state) pushAndPop("forward of a layer");
  for (int i = 0; i < Ranges::levels; ++i) Ranges::pop(nullptr);
}
BENCHMARK(nvtxTooDeep);

void nvtxWithoutAJob(benchmark::State& state) {
  for (auto _ : state)
    if (Ranges::areRecorded()) pushAndPop("forward of a layer");
}
BENCHMARK(nvtxWithoutAJob);

}  // namespace
}  // namespace falcon
