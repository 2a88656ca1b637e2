// Our tuner plugin as NCCL loads it, by each of its versions.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "plugin/tuner/tuner_calls.h"

namespace falcon::plugin {
namespace {

class EveryVersion : public testing::TestWithParam<int> {
 protected:
  std::unique_ptr<TunerCalls> load() {
    void* library = dlopen(FALCON_TUNER, RTLD_NOW | RTLD_LOCAL);
    if (!library) return ADD_FAILURE() << dlerror(), nullptr;
    const auto& version = tunerVersions[7 - GetParam()];
    const void* symbol = dlsym(library, version.symbol);
    return symbol ? version.adapt(symbol) : nullptr;
  }
  static void setRules(const std::string& rules) {
    const std::string file = testing::TempDir() + "tuner-rules-" + std::to_string(getpid());
    std::ofstream(file) << rules;
    setenv("NCCL_FALCON_TUNER_RULES", file.c_str(), 1);
  }
  ~EveryVersion() override { unsetenv("NCCL_FALCON_TUNER_RULES"); }
};
INSTANTIATE_TEST_SUITE_P(Tuner, EveryVersion, testing::Range(4, 8));

TEST_P(EveryVersion, FollowsItsRules) {
  setRules("avoid AllReduce Tree * from=1\nchannels AllReduce 3\n");
  const auto tuner = load();
  ASSERT_TRUE(tuner);
  EXPECT_STREQ(tuner->name(), "Falcon");
  EXPECT_TRUE(tuner->missing().empty());
  void* context = nullptr;
  ASSERT_EQ(tuner->init({.id = 1, .ranks = 8, .nodes = 2}, &context), success);
  for (int call = 0; call < 3; ++call) {
    CostTable costs;
    for (auto& row : costs) std::fill(std::begin(row), std::end(row), 5.0F);
    int channels = 0;
    ASSERT_EQ(tuner->choose(context, TunedFunction::allReduce, 100, 1, costs, &channels), success);
    EXPECT_EQ(channels, 3);
    EXPECT_EQ(costs[treeAlgorithm][protocolSimple], call == 0 ? 5 : ignoredCost);
    EXPECT_EQ(costs[ringAlgorithm][protocolSimple], 5);
  }
  EXPECT_EQ(tuner->finalize(context), success);
}

TEST_P(EveryVersion, RefusesWhatItCannotRead) {
  const auto tuner = load();
  ASSERT_TRUE(tuner);
  void* context = nullptr;
  setRules("avoid nothing");
  EXPECT_NE(tuner->init({.ranks = 2}, &context), success);
  setenv("NCCL_FALCON_TUNER_RULES", "/no/such/file", 1);
  EXPECT_NE(tuner->init({.ranks = 2}, &context), success);
  EXPECT_EQ(context, nullptr);
}

TEST_P(EveryVersion, WithoutRulesChangesNothing) {
  const auto tuner = load();
  ASSERT_TRUE(tuner);
  void* context = nullptr;
  ASSERT_EQ(tuner->init({.ranks = 2}, &context), success);
  CostTable costs;
  for (auto& row : costs) std::fill(std::begin(row), std::end(row), 5.0F);
  int channels = 0;
  ASSERT_EQ(tuner->choose(context, TunedFunction::reduce, 100, 1, costs, &channels), success);
  EXPECT_EQ(channels, 0);
  for (const auto& row : costs)
    for (const float cost : row) EXPECT_EQ(cost, 5);
  EXPECT_EQ(tuner->finalize(context), success);
}

}  // namespace
}  // namespace falcon::plugin
