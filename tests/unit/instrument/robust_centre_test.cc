#include "instrument/robust_centre.h"

#include <gtest/gtest.h>

#include <cmath>

namespace falcon::instrument {
namespace {

TEST(RobustCentre, OfNothingIsNothing) {
  EXPECT_EQ(robustCentre({}, 1), 0);
}

TEST(RobustCentre, OfFewValuesIsTheirMedian) {
  EXPECT_EQ(robustCentre({3}, 1), 3);
  EXPECT_EQ(robustCentre({1, 2, 900}, 1), 2);
}

/// Whatever a few values do, and wherever they stand, the centre stays among the others.
TEST(RobustCentre, IsNotMovedByAFewFarValues) {
  for (const std::size_t size : {6, 16, 17, 64}) {
    std::vector<double> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<double>(i % 5) - 2;
    for (std::size_t i = 0; i < size / 6; ++i) values[5 * i] = 1e6;
    std::vector<double> backwards(values.rbegin(), values.rend());
    EXPECT_LE(std::abs(robustCentre(values, 1)), 2) << size;
    EXPECT_NEAR(robustCentre(values, 1), robustCentre(backwards, 1), 1e-9) << size;
  }
}

TEST(RobustCentre, OfTwoModesLiesBetweenThem) {
  for (const std::size_t size : {8, 16, 32}) {
    std::vector<double> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = i % 2 == 0 ? 10 : 20;
    EXPECT_NEAR(robustCentre(values, 5), 15, 0.1) << size;
  }
}

TEST(PlainDeviation, IsThatOfTheSample) {
  EXPECT_EQ(plainDeviation({}), 0);
  EXPECT_EQ(plainDeviation({4}), 0);
  EXPECT_DOUBLE_EQ(plainDeviation({1, 3}), std::sqrt(2.0));
}

}  // namespace
}  // namespace falcon::instrument
