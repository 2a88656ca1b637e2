// The toolkit's own conversions of 8-bit floats, on the host, against ours.
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <cstring>

#include "collectives/float8.h"

namespace falcon::collectives {
namespace {

TEST(Float8, IsReadAsTheToolkitReadsIt) {
  for (int stored = 0; stored < 0x100; ++stored) {
    __nv_fp8_e4m3 e4m3;
    __nv_fp8_e5m2 e5m2;
    e4m3.__x = e5m2.__x = static_cast<__nv_fp8_storage_t>(stored);
    const auto same = [](float one, float two) { return one == two || (one != one && two != two); };
    EXPECT_TRUE(same(floatFromE4m3(e4m3.__x), static_cast<float>(e4m3))) << stored;
    EXPECT_TRUE(same(floatFromE5m2(e5m2.__x), static_cast<float>(e5m2))) << stored;
  }
}

// All floats in steps of a prime: every exponent, and mantissas of every kind.
TEST(Float8, IsRoundedAsTheToolkitRoundsIt) {
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 1009) {
    const auto low = static_cast<std::uint32_t>(bits);
    float value;
    std::memcpy(&value, &low, sizeof value);
    ASSERT_EQ(e4m3FromFloat(value), __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3)) << std::hex << low;
    ASSERT_EQ(e5m2FromFloat(value), __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2)) << std::hex << low;
  }
}

}  // namespace
}  // namespace falcon::collectives
