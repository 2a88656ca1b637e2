#include "collectives/reduce_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "collectives/float8.h"
#include "collectives/half_float.h"

namespace falcon::collectives {
namespace {

template <class T>
std::vector<T> combined(DataType type, ReduceOp op, const std::vector<T>& one, const std::vector<T>& two,
                        KernelSet set) {
  std::vector<T> result(one.size());
  combineKernel(type, op, set)(reinterpret_cast<std::byte*>(result.data()),
                               reinterpret_cast<const std::byte*>(one.data()),
                               reinterpret_cast<const std::byte*>(two.data()), one.size());
  return result;
}

class ReduceKernels : public testing::TestWithParam<KernelSet> {
 protected:
  void SetUp() override {
    if (GetParam() == KernelSet::avx2 && bestKernelSet() != KernelSet::avx2) GTEST_SKIP() << "this CPU has no AVX2";
  }
};

TEST_P(ReduceKernels, IntegersWrap) {
  const std::vector<std::int8_t> one(40, 100), two(40, 60);
  EXPECT_EQ(combined(DataType::i8, ReduceOp::sum, one, two, GetParam())[39], static_cast<std::int8_t>(160));
  const std::vector<std::int32_t> high(9, std::numeric_limits<std::int32_t>::max()), second(9, 2);
  EXPECT_EQ(combined(DataType::i32, ReduceOp::sum, high, second, GetParam())[8],
            std::numeric_limits<std::int32_t>::min() + 1);
  EXPECT_EQ(combined(DataType::i32, ReduceOp::prod, high, second, GetParam())[8], -2);
  const std::vector<std::uint64_t> top(5, ~std::uint64_t{0}), three(5, 3);
  EXPECT_EQ(combined(DataType::u64, ReduceOp::prod, top, three, GetParam())[4], ~std::uint64_t{0} - 2);
}

TEST_P(ReduceKernels, ComparisonsKnowTheSign) {
  const std::vector<std::int8_t> minus(33, -1), plus(33, 1);
  EXPECT_EQ(combined(DataType::i8, ReduceOp::max, minus, plus, GetParam())[32], 1);
  EXPECT_EQ(combined(DataType::i8, ReduceOp::min, minus, plus, GetParam())[32], -1);
  const std::vector<std::uint8_t> big(33, 255), small(33, 1);
  EXPECT_EQ(combined(DataType::u8, ReduceOp::max, big, small, GetParam())[32], 255);
}

TEST_P(ReduceKernels, ANumberWinsOverNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // Long enough for vectors and a rest.
  std::vector<float> one(19, nan), two(19, 2.5f);
  for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
    for (const float value : combined(DataType::f32, op, one, two, GetParam())) EXPECT_EQ(value, 2.5f);
    for (const float value : combined(DataType::f32, op, two, one, GetParam())) EXPECT_EQ(value, 2.5f);
    const std::vector<std::uint16_t> nans(19, 0x7e00), numbers(19, halfFromFloat(2.5f));
    EXPECT_EQ(combined(DataType::f16, op, nans, numbers, GetParam()), numbers);
    EXPECT_EQ(combined(DataType::f16, op, numbers, nans, GetParam()), numbers);
  }
}

template <class T>
void expectBitwise(DataType type, KernelSet set) {
  std::mt19937_64 random(7);
  std::vector<T> one(37), two(37);  // vectors and a rest
  for (auto* values : {&one, &two})
    for (T& value : *values) value = static_cast<T>(random());
  const auto both = combined(type, ReduceOp::bitAnd, one, two, set),
             any = combined(type, ReduceOp::bitOr, one, two, set),
             odd = combined(type, ReduceOp::bitXor, one, two, set);
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(both[i], static_cast<T>(one[i] & two[i]));
    EXPECT_EQ(any[i], static_cast<T>(one[i] | two[i]));
    EXPECT_EQ(odd[i], static_cast<T>(one[i] ^ two[i]));
  }
}

TEST_P(ReduceKernels, BitwiseOnesAreOfIntegersAlone) {
  expectBitwise<std::int8_t>(DataType::i8, GetParam());
  expectBitwise<std::uint8_t>(DataType::u8, GetParam());
  expectBitwise<std::int32_t>(DataType::i32, GetParam());
  expectBitwise<std::uint32_t>(DataType::u32, GetParam());
  expectBitwise<std::int64_t>(DataType::i64, GetParam());
  expectBitwise<std::uint64_t>(DataType::u64, GetParam());
  for (const DataType type : {DataType::f16, DataType::f32, DataType::f64, DataType::bf16, DataType::f8e4m3})
    for (const ReduceOp op : {ReduceOp::bitAnd, ReduceOp::bitOr, ReduceOp::bitXor})
      EXPECT_EQ(combineKernel(type, op, GetParam()), nullptr) << nameOf(type) << " " << nameOf(op);
}

TEST_P(ReduceKernels, WorkInPlaceAtAnyAlignmentAndTouchNothingElse) {
  std::mt19937 random(3);
  for (const std::size_t count : {0, 1, 7, 8, 9, 31, 64, 100})
    for (std::size_t offset = 0; offset < 8; ++offset) {
      std::vector<std::byte> one(offset + count * 4 + 16), two(one.size());
      for (auto* bytes : {&one, &two})
        for (std::byte& byte : *bytes) byte = static_cast<std::byte>(random());
      const auto before = one;
      combineKernel(DataType::u32, ReduceOp::sum, GetParam())(one.data() + offset, one.data() + offset,
                                                              two.data() + offset, count);
      for (size_t i = 0; i < one.size(); ++i) {
        const bool inside = i >= offset && i < offset + count * 4;
        if (!inside) {
          ASSERT_EQ(one[i], before[i]);
        }
      }
      for (size_t i = 0; i < count; ++i) {
        std::uint32_t left, right, sum;
        std::memcpy(&left, before.data() + offset + 4 * i, 4);
        std::memcpy(&right, two.data() + offset + 4 * i, 4);
        std::memcpy(&sum, one.data() + offset + 4 * i, 4);
        ASSERT_EQ(sum, left + right);
      }
    }
}

TEST_P(ReduceKernels, DivisionDropsTheFractionOfIntegers) {
  std::vector<std::int32_t> values = {7, -7, 0, 6, 100, 101, 102, 103, 104};
  divideKernel(DataType::i32, GetParam())(reinterpret_cast<std::byte*>(values.data()), values.size(), 3);
  EXPECT_EQ(values, (std::vector<std::int32_t>{2, -2, 0, 2, 33, 33, 34, 34, 34}));
  // More ranks than the type can hold.
  std::vector<std::int8_t> bytes = {100, -100, 5};
  divideKernel(DataType::i8, GetParam())(reinterpret_cast<std::byte*>(bytes.data()), bytes.size(), 1000);
  EXPECT_EQ(bytes, (std::vector<std::int8_t>{0, 0, 0}));
}

// Longer than a vector, with a rest; in place too.
template <class T>
std::vector<T> scaled(DataType type, std::vector<T> values, T scalar, KernelSet set) {
  const std::vector<T> before = values;
  std::vector<T> result(values.size());
  scaleKernel(type, set)(reinterpret_cast<std::byte*>(result.data()), reinterpret_cast<const std::byte*>(values.data()),
                         reinterpret_cast<const std::byte*>(&scalar), values.size());
  EXPECT_EQ(values, before);
  auto* inPlace = reinterpret_cast<std::byte*>(values.data());
  scaleKernel(type, set)(inPlace, inPlace, reinterpret_cast<const std::byte*>(&scalar), values.size());
  EXPECT_EQ(values, result);
  return result;
}

TEST_P(ReduceKernels, ScalingRoundsOnceAndWraps) {
  const auto set = GetParam();
  EXPECT_EQ(scaled<std::int8_t>(DataType::i8, std::vector<std::int8_t>(37, 100), 3, set)[36],
            static_cast<std::int8_t>(300));
  EXPECT_EQ(scaled<std::int64_t>(DataType::i64, std::vector<std::int64_t>(5, -7), -3, set)[4], 21);
  EXPECT_EQ(scaled<std::uint32_t>(DataType::u32, std::vector<std::uint32_t>(9, 0x80000001u), 2, set)[8], 2u);
  EXPECT_EQ(scaled<float>(DataType::f32, std::vector<float>(19, 3.0f), 0.1f, set)[18], 3.0f * 0.1f);
  EXPECT_EQ(scaled<double>(DataType::f64, std::vector<double>(19, 3.0), 0.1, set)[18], 3.0 * 0.1);
  const auto third = halfFromFloat(1.0f / 3), seven = halfFromFloat(7.0f);
  EXPECT_EQ(scaled<std::uint16_t>(DataType::f16, std::vector<std::uint16_t>(19, seven), third, set)[18],
            halfFromFloat(7.0f * floatFromHalf(third)));
  const auto brainThird = brainFromFloat(1.0f / 3);
  EXPECT_EQ(
      scaled<std::uint16_t>(DataType::bf16, std::vector<std::uint16_t>(19, brainFromFloat(7.0f)), brainThird, set)[18],
      brainFromFloat(7.0f * floatFromBrain(brainThird)));
  EXPECT_EQ(scaled<std::uint8_t>(DataType::f8e4m3, std::vector<std::uint8_t>(19, e4m3FromFloat(448)), e4m3FromFloat(2),
                                 set)[18],
            e4m3FromFloat(448));
}

INSTANTIATE_TEST_SUITE_P(Sets, ReduceKernels, testing::Values(KernelSet::portable, KernelSet::avx2),
                         [](const auto& kind) { return kind.param == KernelSet::avx2 ? "Avx2" : "Portable"; });

TEST(ReduceKernelSets, GiveTheSameBits) {
  if (bestKernelSet() != KernelSet::avx2) GTEST_SKIP() << "this CPU has no AVX2";
  std::mt19937 random(11);
  for (int typeNumber = 0; typeNumber < dataTypeCount; ++typeNumber) {
    const auto type = static_cast<DataType>(typeNumber);
    const std::size_t count = 4099;
    std::vector<std::byte> one(count * sizeOf(type)), two(one.size());
    for (auto* bytes : {&one, &two})
      for (std::byte& byte : *bytes) byte = static_cast<std::byte>(random());
    // Random bits are sometimes NaNs, whose payloads may differ: clear one bit of the exponent.
    const std::size_t width = sizeOf(type);
    // An E4M3's NaN needs all its bits, so it goes too.
    const bool isFloat = type == DataType::f8e4m3 || type == DataType::f8e5m2 || type == DataType::f16 ||
                         type == DataType::bf16 || type == DataType::f32 || type == DataType::f64;
    if (isFloat)
      for (auto* bytes : {&one, &two})
        for (size_t i = width - 1; i < bytes->size(); i += width) (*bytes)[i] &= std::byte{0xbf};
    for (int op = 0; op <= reduceOpCount; ++op) {
      std::vector<std::byte> plain(one.size()), fast(one.size());
      combineKernel(type, static_cast<ReduceOp>(op), KernelSet::portable)(plain.data(), one.data(), two.data(), count);
      combineKernel(type, static_cast<ReduceOp>(op), KernelSet::avx2)(fast.data(), one.data(), two.data(), count);
      EXPECT_EQ(plain, fast) << nameOf(type) << " " << nameOf(static_cast<ReduceOp>(op));
    }
  }
}

TEST(HalfFloat, EveryHalfSurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = floatFromHalf(half);
    if (std::isnan(value)) {
      EXPECT_EQ(half & 0x7c00, 0x7c00);
      EXPECT_NE(half & 0x03ff, 0);
    } else {
      ASSERT_EQ(halfFromFloat(value), half);
    }
    const float brain = floatFromBrain(half);
    if (!std::isnan(brain)) {
      ASSERT_EQ(brainFromFloat(brain), half);
    }
  }
}

// Around every half: the value in the middle goes to the even one, a hair more or less to the nearer one.
TEST(HalfFloat, RoundsToNearestEven) {
  for (std::uint16_t half = 0; half < 0x7bff; ++half) {
    const float low = floatFromHalf(half), high = floatFromHalf(half + 1);
    const float middle = low + (high - low) / 2;
    const std::uint16_t even = half % 2 == 0 ? half : half + 1;
    ASSERT_EQ(halfFromFloat(middle), even);
    ASSERT_EQ(halfFromFloat(std::nextafter(middle, low)), half);
    ASSERT_EQ(halfFromFloat(std::nextafter(middle, high)), half + 1);
  }
  EXPECT_EQ(halfFromFloat(65519.9f), 0x7bff);
  EXPECT_EQ(halfFromFloat(65520.0f), 0x7c00);
  EXPECT_EQ(brainFromFloat(std::ldexp(1.0f + 1.0f / 256, 3)), brainFromFloat(8.0f));
  EXPECT_TRUE(std::isnan(floatFromBrain(brainFromFloat(std::numeric_limits<float>::signaling_NaN()))));
  EXPECT_TRUE(std::isnan(floatFromHalf(halfFromFloat(std::numeric_limits<float>::quiet_NaN()))));
}

}  // namespace
}  // namespace falcon::collectives
