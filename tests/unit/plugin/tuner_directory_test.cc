// Which tuner plugin a process has, and what it makes of a table of costs.
#include "plugin/tuner/tuner_directory.h"

#include <gmock/gmock.h>

#include "harness/fake_plugin_library.h"
#include "harness/fake_tuner.h"

namespace falcon::plugin {
namespace {

using falcon::test::FakePlugin;
using falcon::test::FakeTunerCounts;

constexpr const char* tunerVariable = "NCCL_TUNER_PLUGIN";
const TunedCommunicator tuned{.id = 7, .ranks = 8, .nodes = 2};

FakeTunerCounts& countsOf(const FakePlugin& plugin) {
  return plugin.its<FakeTunerCounts>("fakeTunerCounts");
}

struct Table {
  Table() {
    for (auto& row : costs)
      for (float& cost : row) cost = ignoredCost;
    costs[treeAlgorithm][protocolSimple] = 10;
    costs[ringAlgorithm][protocolSimple] = 20;
  }
  CostTable costs;
};

class EveryTuner : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Plugin, EveryTuner, testing::Range(4, 8));

TEST_P(EveryTuner, IsAskedWithTheTableAsItIs) {
  const FakePlugin fake("tuner", GetParam(), {{"FALCON_FAKE_TUNER_ROW", "1"}, {"FALCON_FAKE_TUNER_CHANNELS", "3"}});
  TunerDirectory directory(tunerVariable, fake.path());
  {
    const auto session = directory.open(tuned);
    ASSERT_TRUE(session);
    EXPECT_EQ(session->calls().version(), GetParam());
    EXPECT_EQ(countsOf(fake).ranks, 8);
    EXPECT_EQ(countsOf(fake).nodes, 2);
    Table table;
    EXPECT_EQ(session->choose(TunedFunction::allReduce, 1 << 20, 1, table.costs), 3);
    EXPECT_EQ(countsOf(fake).offered, 2);
    EXPECT_EQ(table.costs[ringAlgorithm][protocolSimple], 0);
    EXPECT_EQ(table.costs[treeAlgorithm][protocolSimple], 10);
  }
  EXPECT_EQ(countsOf(fake).finalizes, 1);
}

TEST_P(EveryTuner, ThatIsUnsoundIsDeclinedAndNotTriedAgain) {
  for (const char* fault : {"init", "lacks-members"}) {
    const FakePlugin fake("tuner", GetParam(), {{"FALCON_FAKE_PLUGIN_FAULT", fault}});
    TunerDirectory directory(tunerVariable, fake.path());
    EXPECT_EQ(directory.open(tuned), nullptr);
    const int inits = countsOf(fake).inits;
    EXPECT_EQ(directory.open(tuned), nullptr);
    EXPECT_EQ(countsOf(fake).inits, inits);
  }
}

TEST(TunerDirectory, AnErrorMeansNoChoice) {
  const FakePlugin fake("tuner", 6, {{"FALCON_FAKE_PLUGIN_FAULT", "ask"}});
  TunerDirectory directory(tunerVariable, fake.path());
  const auto session = directory.open(tuned);
  ASSERT_TRUE(session);
  Table table;
  EXPECT_EQ(session->choose(TunedFunction::allGather, 100, 1, table.costs), std::nullopt);
}

TEST(TunerDirectory, NoneIsNone) {
  EXPECT_EQ(TunerDirectory(tunerVariable, "").open(tuned), nullptr);
  EXPECT_EQ(TunerDirectory(tunerVariable, "none").open(tuned), nullptr);
  EXPECT_EQ(TunerDirectory(tunerVariable, "no-such").open(tuned), nullptr);
}

}  // namespace
}  // namespace falcon::plugin
