#include "instrument/clock_alignment.h"

#include <gtest/gtest.h>

#include <random>

namespace falcon::instrument {
namespace {

struct Network {
  Nanoseconds offset = 0ns;
  double drift = 0;          ///< their seconds a second of ours, minus 1
  Nanoseconds least = 50us;  ///< delay of one way
  double slow = 0.3;         ///< share of the ways that take up to 20 times longer
  std::mt19937 random{1};

  Nanoseconds theirs(Nanoseconds ours) const {
    return ours + offset + Nanoseconds(static_cast<std::int64_t>(static_cast<double>(ours.count()) * drift));
  }
  Nanoseconds way() {
    std::uniform_real_distribution<> uniform(0, 1);
    const double factor = uniform(random) < slow ? 1 + 19 * uniform(random) : 1 + 0.2 * uniform(random);
    return Nanoseconds(static_cast<std::int64_t>(static_cast<double>(least.count()) * factor));
  }
  ClockExchange exchange(Nanoseconds ours) {
    const Nanoseconds there = ours + way(), answered = there + 20us;
    return {ours, theirs(there), theirs(answered), answered + way()};
  }
};

class ClockAlignmentOver : public testing::TestWithParam<double> {};

TEST_P(ClockAlignmentOver, TheTruthLiesWithinTheBoundAndTheBoundIsClose) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Network network{.offset = -1234567891234ns, .drift = GetParam(), .random = std::mt19937(seed)};
    ClockAlignment alignment;
    for (Nanoseconds now = 1s; now < 300s; now += 1s) {
      ASSERT_TRUE(alignment.add(network.exchange(now)));
      if (now < 5s) continue;
      const Nanoseconds later = now + 500ms;
      const Nanoseconds truth = network.theirs(later) - later;
      const Nanoseconds bound = alignment.errorBound(later);
      EXPECT_LE(std::abs((alignment.offsetAt(later) - truth).count()), bound.count()) << "seed " << seed;
      EXPECT_LT(bound, 2ms);
      EXPECT_LE(std::abs((alignment.toOurs(network.theirs(later)) - later).count()), bound.count() + 1000);
    }
    EXPECT_NEAR(alignment.drift(), GetParam(), 20e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Drifts, ClockAlignmentOver, testing::Values(0.0, 30e-6, -30e-6, 100e-6, -150e-6));

TEST(ClockAlignment, KnowsNothingAtFirst) {
  const ClockAlignment alignment;
  EXPECT_FALSE(alignment.known());
  EXPECT_EQ(alignment.offsetAt(1s), 0ns);
  EXPECT_EQ(alignment.errorBound(1s), Nanoseconds::max());
}

TEST(ClockAlignment, DropsWhatCannotBe) {
  ClockAlignment alignment;
  EXPECT_FALSE(alignment.add({.asked = 2s, .received = 1s, .answered = 1s, .back = 1s}));
  EXPECT_FALSE(alignment.add({.asked = 1s, .received = 5s, .answered = 4s, .back = 2s}));
  EXPECT_FALSE(alignment.add({.asked = 1s, .received = 5s, .answered = 9s, .back = 2s}));
  EXPECT_FALSE(alignment.known());
}

}  // namespace
}  // namespace falcon::instrument
