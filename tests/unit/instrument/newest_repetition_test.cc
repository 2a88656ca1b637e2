#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "instrument/pattern_tracker.h"

namespace falcon::instrument {
namespace {

TEST(NewestRepetition, IsTheLongestSuffixOfThreeRepeats) {
  const auto of = [](const char* text) {
    std::vector<std::uint64_t> values;
    for (; *text; ++text) values.push_back(static_cast<std::uint64_t>(*text));
    const auto found = newestRepetition(values);
    return found ? std::pair(found->length, found->covered) : std::pair(size_t{0}, size_t{0});
  };
  EXPECT_EQ(of(""), std::pair(size_t{0}, size_t{0}));
  EXPECT_EQ(of("abcabca"), std::pair(size_t{0}, size_t{0}));
  EXPECT_EQ(of("xyabcabcabc"), std::pair(size_t{3}, size_t{9}));
  EXPECT_EQ(of("qababcababcababc"), std::pair(size_t{5}, size_t{15}));
  EXPECT_EQ(of("ababab"), std::pair(size_t{2}, size_t{6}));
  EXPECT_EQ(of("abababcab"), std::pair(size_t{0}, size_t{0}));
}

TEST(NewestRepetition, AgreesWithBruteForce) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::uint64_t> values(random() % 40);
    const unsigned letters = 1 + random() % 3;
    for (auto& value : values) value = random() % letters;
    size_t length = 0, covered = 0;
    for (size_t suffix = 3; suffix <= values.size(); ++suffix) {
      for (size_t period = 1; 3 * period <= suffix; ++period) {
        bool repeats = true;
        for (size_t i = values.size() - suffix; i + period < values.size(); ++i)
          repeats = repeats && values[i] == values[i + period];
        if (!repeats) continue;
        length = period, covered = suffix;
        break;
      }
    }
    const auto found = newestRepetition(values);
    ASSERT_EQ(found.has_value(), covered > 0);
    if (found) {
      EXPECT_EQ(std::pair(found->length, found->covered), std::pair(length, covered));
    }
  }
}

}  // namespace
}  // namespace falcon::instrument
