// One rank of a job that tests the links of its ring, and of so many of its trees, as a validation does:
//   links_probe FILE [TREES]      starts once FILE exists; rank 0 prints one JSON line
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "doctor/link_rounds.h"

namespace falcon::doctor {
namespace {

Status testLinks(const char* goFile, int trees) {
  auto world = joinWorld();
  if (!world) return world.error();
  auto queue = wavesOf(*world);
  if (!queue) return queue.error();
  while (::access(goFile, F_OK) != 0) std::this_thread::sleep_for(20ms);
  if (auto done = world->network().barrier(stepLimit); !done) return done;

  validate::TestedGroup group{.id = world->communicator->id(), .jobRanks = {}, .ring = {}, .trees = trees};
  group.jobRanks.resize(static_cast<std::size_t>(world->size()));
  std::iota(group.jobRanks.begin(), group.jobRanks.end(), 0);
  const auto& clock = SystemClock::instance();
  const auto started = clock.now();
  queue->add(validate::linksOf(group));
  std::vector<validate::LinkMeasurement> measured;
  if (auto done = runWaves(*world, *queue, measured); !done) return done;
  const double took = seconds(clock.now() - started);

  std::vector<double> rates;
  for (const auto& link : measured)
    if (link.status == validate::LinkStatus::measured) rates.push_back(link.bytesPerSecond());
  const auto [slowest, fastest] = std::minmax_element(rates.begin(), rates.end());
  const nlohmann::json said = {{"ranks", world->size()},
                               {"passes", queue->passes()},
                               {"waves", queue->waves().size()},
                               {"measured", rates.size()},
                               {"slowest", rates.empty() ? 0 : *slowest},
                               {"fastest", rates.empty() ? 0 : *fastest},
                               {"seconds", took}};
  if (world->rank() == 0) std::printf("%s\n", said.dump().c_str());
  return world->network().barrier(stepLimit);
}

}  // namespace
}  // namespace falcon::doctor

int main(int count, char** words) {
  if (count != 2 && count != 3) return 2;
  return falcon::doctor::testLinks(words[1], count == 3 ? std::atoi(words[2]) : 0) ? 0 : 1;
}
