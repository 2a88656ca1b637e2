// Every collective against a sequential oracle, in random worlds or in all of them: see README.md.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "algorithms.h"
#include "harness/forked_ranks.h"
#include "harness/thoroughness.h"
#include "rank_run.h"

namespace falcon::property {
namespace {

using test::ForkedRanks;

class SharedCommon {
 public:
  SharedCommon() {
    void* memory = mmap(nullptr, sizeof(Common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    common_ = static_cast<Common*>(memory);
  }
  ~SharedCommon() { munmap(common_, sizeof(Common)); }
  SharedCommon(const SharedCommon&) = delete;
  Common& operator*() const { return *common_; }

 private:
  Common* common_;
};

/// Where ranks are, for one that hangs.
std::string placesOf(const World& world, const Common& common) {
  std::string text;
  for (int lane = 0; lane < world.lanes; ++lane)
    for (int rank = 0; rank < world.ranks; ++rank) text += " " + std::to_string(common.reached[lane][rank].load());
  return text;
}

testing::AssertionResult runWorld(const World& world, const GroupSource& groups, test::Seconds limit) {
  SharedCommon shared;
  Common& common = *shared;
  const TuningFile tuning(world.algorithm);
  ForkedRanks processes(world.processes, [&](int process) -> std::string {
    for (const auto& [name, value] : world.environment(process, tuning.path())) setenv(name.c_str(), value.c_str(), 1);
    std::vector<std::thread> threads;
    for (int rank = process; rank < world.ranks; rank += world.processes)
      threads.emplace_back([&, rank] { runRank(world, rank, common, groups); });
    for (std::thread& thread : threads) thread.join();
    return "";
  });
  const auto ended = processes.allRight(limit);
  if (common.failed.load()) return testing::AssertionFailure() << common.failure;
  if (!ended) return testing::AssertionFailure() << ended.message() << "the ranks' groups:" << placesOf(world, common);
  return testing::AssertionSuccess();
}

std::uint64_t seedOfThisRun() {
  if (const char* given = std::getenv("FALCON_PROPERTY_SEED")) return std::strtoull(given, nullptr, 10);
  return std::random_device()() % 1'000'000;
}

struct Cases {
  unsigned first = 0, last = 0;
};
const char* usualCases() {
  return test::isSampled() ? "8" : "40";
}
/// "60": so many; "17-17": these.
Cases casesOfThisRun() {
  const char* given = std::getenv("FALCON_PROPERTY_CASES");
  const std::string text = given ? given : usualCases();
  Cases cases;
  if (std::sscanf(text.c_str(), "%u-%u", &cases.first, &cases.last) == 2) return cases;
  cases.last = static_cast<unsigned>(std::strtoul(text.c_str(), nullptr, 10)) - 1;
  cases.first = 0;
  return cases;
}

int groupsOfAWorld(const World& world) {
  const int most = test::thorough() ? 240 : 40;
  return most / (world.ranks > 8 ? 4 : world.ranks > 4 ? 2 : 1);
}

TEST(Collectives, AreRightInASampleOfAllWorlds) {
  const std::uint64_t seed = seedOfThisRun();
  const auto [first, last] = casesOfThisRun();
  std::printf("FALCON_PROPERTY_SEED=%llu FALCON_PROPERTY_CASES=%u-%u repeats this sample\n",
              static_cast<unsigned long long>(seed), first, last);
  for (unsigned index = first; index <= last; ++index) {
    Choices choices(seed, index);
    const World world = drawWorld(choices);
    const auto groups = [&](int lane, int ranks) {
      Choices calls(seed, (index + 1) * 1'000'003ULL + static_cast<unsigned>(lane) * 17 + static_cast<unsigned>(ranks));
      std::vector<Group> all;
      const int count = groupsOfAWorld(world);
      for (int i = 0; i < count; ++i) all.push_back(drawGroup(calls, world, ranks));
      return all;
    };
    ASSERT_TRUE(runWorld(world, groups, test::Seconds(150)))
        << "in " << world.text() << "\nrepeat: FALCON_PROPERTY_SEED=" << seed << " FALCON_PROPERTY_CASES=" << index
        << "-" << index << " multi_rank_property";
  }
}

// The whole product takes long: `scripts/check --full`.
std::vector<World> worldsOfThisRun() {
  return std::getenv("FALCON_PROPERTY_FULL") ? allWorlds() : std::vector<World>();
}

class EveryWorld : public testing::TestWithParam<World> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EveryWorld);

TEST_P(EveryWorld, IsRightAtEveryEdge) {
  const World& world = GetParam();
  EXPECT_TRUE(runWorld(
      world, [&](int, int) { return allGroups(world); }, test::Seconds(1800)))
      << "in " << world.text();
}
INSTANTIATE_TEST_SUITE_P(Product, EveryWorld, testing::ValuesIn(worldsOfThisRun()));

}  // namespace
}  // namespace falcon::property
