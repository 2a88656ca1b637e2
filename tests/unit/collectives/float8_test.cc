// 8-bit floats against a table of all their values.
#include "collectives/float8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "collectives/reduce_kernels.h"

namespace falcon::collectives {
namespace {

struct Kind {
  const char* name;
  DataType type;
  int mantissaBits, bias;
  bool hasInfinity;
  float largest;
  float (*decode)(std::uint8_t);
  std::uint8_t (*encode)(float);
};
constexpr Kind kinds[] = {{"E4m3", DataType::f8e4m3, 3, 7, false, 448, floatFromE4m3, e4m3FromFloat},
                          {"E5m2", DataType::f8e5m2, 2, 15, true, 57344, floatFromE5m2, e5m2FromFloat}};

/// By the definition of the format; NaN where it is one.
double valueOf(const Kind& kind, std::uint8_t stored) {
  const int mantissa = stored & ((1 << kind.mantissaBits) - 1);
  const int exponent = (stored & 0x7f) >> kind.mantissaBits;
  const int scale = 1 - kind.bias - kind.mantissaBits;
  const double sign = stored & 0x80 ? -1 : 1;
  const int highest = 0x7f >> kind.mantissaBits;
  if (kind.hasInfinity && exponent == highest)
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  if (!kind.hasInfinity && (stored & 0x7f) == 0x7f) return std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, scale);
  return sign * std::ldexp(mantissa + (1 << kind.mantissaBits), scale + exponent - 1);
}

/// The nearest number by looking at all; of two equally near ones the even one.
std::uint8_t nearest(const Kind& kind, double value) {
  if (std::isnan(value)) return 0x7f;
  const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::min(std::fabs(value), static_cast<double>(kind.largest));
  std::uint8_t best = 0;
  for (int stored = 1; stored < 0x80; ++stored) {
    const double candidate = valueOf(kind, static_cast<std::uint8_t>(stored));
    if (!std::isfinite(candidate)) continue;
    const double distance = std::fabs(candidate - magnitude), least = std::fabs(valueOf(kind, best) - magnitude);
    if (distance < least || (distance == least && stored % 2 == 0)) best = static_cast<std::uint8_t>(stored);
  }
  return best | sign;
}

class Float8 : public testing::TestWithParam<Kind> {};

TEST_P(Float8, EveryEncodingMeansWhatTheFormatSays) {
  const Kind& kind = GetParam();
  for (int stored = 0; stored < 0x100; ++stored) {
    const double wanted = valueOf(kind, static_cast<std::uint8_t>(stored));
    const float value = kind.decode(static_cast<std::uint8_t>(stored));
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(value)) << stored;
      EXPECT_EQ(kind.encode(value), 0x7f);
      continue;
    }
    EXPECT_EQ(value, wanted) << stored;
    EXPECT_EQ(std::signbit(value), stored >= 0x80);
    if (std::isfinite(wanted)) {
      EXPECT_EQ(kind.encode(value), stored);
    }
  }
}

TEST_P(Float8, RoundsToNearestEvenAndStopsAtTheLargest) {
  const Kind& kind = GetParam();
  const auto check = [&](float value) {
    ASSERT_EQ(kind.encode(value), nearest(kind, value)) << value;
    ASSERT_EQ(kind.encode(-value), nearest(kind, -value)) << value;
  };
  for (int stored = 0; stored < 0x7f; ++stored) {
    const auto low = static_cast<float>(valueOf(kind, static_cast<std::uint8_t>(stored)));
    const auto high = static_cast<float>(valueOf(kind, static_cast<std::uint8_t>(stored + 1)));
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const float middle = low + (high - low) / 2;
    for (const float value : {middle, std::nextafter(middle, low), std::nextafter(middle, high)}) check(value);
  }
  for (const float value : {kind.largest, std::nextafter(kind.largest, 1e9f), kind.largest * 1.03f, kind.largest * 1.1f,
                            3e38f, std::numeric_limits<float>::infinity(), 1e-30f, 0.0f})
    check(value);
  EXPECT_EQ(kind.decode(kind.encode(std::numeric_limits<float>::infinity())), kind.largest);
  EXPECT_EQ(kind.encode(-std::numeric_limits<float>::quiet_NaN()), 0x7f);
}

// Every pair of values there is.
TEST_P(Float8, EveryReductionIsTheRoundedFloatOne) {
  const Kind& kind = GetParam();
  std::vector<std::uint8_t> one, two;
  for (int left = 0; left < 0x100; ++left)
    for (int right = 0; right < 0x100; ++right) {
      one.push_back(static_cast<std::uint8_t>(left));
      two.push_back(static_cast<std::uint8_t>(right));
    }
  std::vector<std::uint8_t> result(one.size());
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min}) {
    combineKernel(kind.type, op)(reinterpret_cast<std::byte*>(result.data()),
                                 reinterpret_cast<const std::byte*>(one.data()),
                                 reinterpret_cast<const std::byte*>(two.data()), one.size());
    for (size_t i = 0; i < one.size(); ++i) {
      const float left = kind.decode(one[i]), right = kind.decode(two[i]);
      float wanted = left + right;
      if (op == ReduceOp::prod) wanted = left * right;
      if (op == ReduceOp::max) wanted = std::fmax(left, right);
      if (op == ReduceOp::min) wanted = std::fmin(left, right);
      // Which zero the greater or smaller of two zeros is, is nobody's promise.
      if (wanted == 0 && (op == ReduceOp::max || op == ReduceOp::min)) {
        ASSERT_EQ(result[i] & 0x7f, 0);
        continue;
      }
      ASSERT_EQ(result[i], kind.encode(wanted)) << nameOf(op) << " of " << left << " and " << right;
    }
  }
}

TEST_P(Float8, DivisionRoundsOnce) {
  const Kind& kind = GetParam();
  for (const int divisor : {2, 3, 7}) {
    std::vector<std::uint8_t> values(0x100);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i);
    divideKernel(kind.type)(reinterpret_cast<std::byte*>(values.data()), values.size(), divisor);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(values[i], kind.encode(kind.decode(static_cast<std::uint8_t>(i)) / static_cast<float>(divisor))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Float8, testing::ValuesIn(kinds), [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace falcon::collectives
