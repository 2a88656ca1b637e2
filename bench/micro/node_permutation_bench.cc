// S3: how long the planner takes to find a new order for the nodes of a job, of 8 to 1,024 nodes of 8 ranks (tensor
// parallelism within a node, 16 stages at most), with slow ranks and slow links.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>

#include "rebalance/node_permutation.h"

namespace falcon::rebalance {
namespace {

void permute(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0)), wrong = static_cast<int>(state.range(1));
  const int stages = std::min(16, nodes / 2);
  std::mt19937 random(1);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  PlacementFacts facts{.layout = {nodes / stages, stages, 8}, .volumes = {100e6, 10e6, 1e9}, .microBatches = 32};
  for (Rank place = 0; place < facts.layout.size(); ++place) facts.nodeOfPlace.push_back(place / 8);
  facts.timesAsLong.assign(facts.nodeOfPlace.size(), 1);
  for (int i = 0; i < wrong; ++i) facts.timesAsLong[static_cast<std::size_t>(below(facts.layout.size()))] = 1.5;
  for (int i = 0; i < wrong; ++i) {
    const int from = below(nodes);
    facts.slowLinks.push_back({from, (from + stages) % nodes, 4});  // between neighbours of a data-parallel ring
  }
  double worst = 1;
  for (auto _ : state) {
    const auto found = permuteNodes(facts);
    worst = found->after.seconds / found->atLeastSeconds;
  }
  state.counters["times best at most"] = worst;
}
BENCHMARK(permute)->ArgsProduct({{8, 64, 512, 1024}, {1, 4, 32}})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace falcon::rebalance
