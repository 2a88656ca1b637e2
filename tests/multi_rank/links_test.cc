// The links of a ring over real interfaces, from few ranks to many: as many passes, and about as much time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "multi_rank/run_harness.h"

namespace falcon::tests {
namespace {

constexpr double bytesPerSecond = 50e6 / 8;

/// Every rank on a node of its own, whose interface sends at that rate.
nlohmann::json measure(int ranks, int trees = 0, const std::string& rate = "50mbit") {
  TemporaryFolder folder;
  const std::string count = std::to_string(ranks);
  Started job(falconCommand({"run", "-n", count, "--nodes", count, "--describe", folder.file("job"), "--", probe(),
                             folder.file("go"), std::to_string(trees)}),
              {{"NCCL_FALCON", "0"}, {"NCCL_FALCON_SECRET", "links"}});
  for (const auto& rank : waitForDescription(folder.file("job")).ranks) {
    const auto shaped = limitSending(rank, rate, "16k");
    EXPECT_TRUE(shaped) << shaped.error().message();
  }
  std::ofstream(folder.file("go")) << "now";
  EXPECT_EQ(job.wait(), 0) << job.errors();
  const std::string said = job.output();
  const auto line = said.find('{');
  if (line == std::string::npos) return {};
  const auto measured = nlohmann::json::parse(said.substr(line, said.find('}') + 1 - line), nullptr, false);
  std::cout << measured.dump() << std::endl;
  return measured;
}

TEST(LinkTests, TakeAsManyPassesWithManyRanksAsWithFew) {
  if (const auto reason = whyNoNodes()) GTEST_SKIP() << *reason;
  for (const int ranks : {4, 16, 64}) {
    const nlohmann::json measured = measure(ranks);
    ASSERT_TRUE(measured.is_object());
    EXPECT_EQ(measured.at("passes"), 4);
    EXPECT_GE(measured.at("measured"), 2 * ranks);
    EXPECT_LT(measured.at("fastest"), 2 * bytesPerSecond) << "the links are not shaped";
    // A link that looks faster for a moment has the others of its wave measured again: a few waves more, never as many
    // as there are links.
    EXPECT_LE(measured.at("waves"), 8) << ranks;
  }
}

// The time, too: only on a machine with nothing else to do.
TEST(LinkTests, TakeAsLongWithManyRanksAsWithFew) {
  if (!std::getenv("FALCON_TEST_ALONE")) GTEST_SKIP() << "set FALCON_TEST_ALONE=1 on a machine that does nothing else";
  if (const auto reason = whyNoNodes()) GTEST_SKIP() << *reason;
  std::vector<double> seconds;
  for (const int ranks : {4, 8, 16, 32, 64}) seconds.push_back(measure(ranks).at("seconds"));
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  std::cout << "longest / shortest: " << *most / *least << std::endl;
  EXPECT_LE(*most / *least, 1.25);
}

// Of a validation of 8 ranks 3 s in all, the compute tests take 0.7 s of it.
TEST(LinkTests, OfARingAndItsTreesTakeTwoSecondsAtMost) {
  if (!std::getenv("FALCON_TEST_ALONE")) GTEST_SKIP() << "set FALCON_TEST_ALONE=1 on a machine that does nothing else";
  if (const auto reason = whyNoNodes()) GTEST_SKIP() << *reason;
  for (const char* rate : {"50mbit", "100mbit", "200mbit", "1000mbit"})
    for (const int trees : {0, 1, 2}) EXPECT_LE(measure(8, trees, rate).at("seconds"), 2) << rate << ", " << trees;
}

}  // namespace
}  // namespace falcon::tests
