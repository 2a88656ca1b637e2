#include "instrument/alternation.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace falcon::instrument {
namespace {

double spreadOf(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *most - *least;
}

/// 64 samples of which every second one is longer, and the pattern is known.
Alternation known() {
  Alternation samples(0.1);
  for (int i = 0; i < 64; ++i) {
    samples.add(i % 2 ? 5.2 : 5.0);
    samples.refind();
  }
  return samples;
}

TEST(Alternation, IsTakenOffTheSamplesThatWereAndThatCome) {
  Alternation samples = known();
  EXPECT_EQ(samples.added(), 64);
  EXPECT_LT(spreadOf(samples.newest(64)), 1e-9);
  samples.add(5.0);
  EXPECT_NEAR(samples[64], samples[63], 1e-9);
  EXPECT_EQ(samples.follow(0.01), 0) << "it goes on";
}

TEST(Alternation, ThatSlipsOrEndsIsLeftAtOnce) {
  for (const bool slips : {true, false}) {
    Alternation samples = known();
    std::int64_t told = 0;
    int needed = 0;
    for (; told == 0 && needed < 12; ++needed) {
      samples.add(!slips ? 5.1 : needed % 2 ? 5.0 : 5.2);
      told = samples.follow(0.01);
    }
    EXPECT_GT(told, 0) << slips;
    EXPECT_LE(needed, 6) << slips;
    EXPECT_LT(spreadOf(samples.newest(told)), 0.05) << slips;
  }
}

TEST(Alternation, KeepsTheNewestSamples) {
  Alternation samples(0.1);
  for (int i = 0; i < 200; ++i) samples.add(i);
  EXPECT_EQ(samples.values().size(), 128u);
  EXPECT_EQ(samples.oldest(), 72);
  EXPECT_EQ(samples.newest(2), (std::vector{198.0, 199.0}));
  samples.clear();
  EXPECT_EQ(samples.added(), 0);
}

}  // namespace
}  // namespace falcon::instrument
