// Element types and reductions, number for number those of nccl.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace falcon {

/// Values of ncclDataType_t.
enum class DataType : std::uint8_t { i8, u8, i32, u32, i64, u64, f16, f32, f64, bf16, f8e4m3, f8e5m2 };
inline constexpr int dataTypeCount = 12;

/// Values of ncclRedOp_t, then what user ops stand for: what a preMulSum multiplies by is in the Call; the bitwise ones
/// are for integers.
enum class ReduceOp : std::uint8_t { sum, prod, max, min, avg, preMulSum, bitAnd, bitOr, bitXor };
/// The built-in ones; the numbers of user ops follow.
inline constexpr int reduceOpCount = 5;
inline constexpr int reduceKindCount = 9;

inline constexpr std::size_t bytesOfTypes[dataTypeCount] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
/// Bytes of one element.
constexpr std::size_t sizeOf(DataType type) {
  return bytesOfTypes[static_cast<int>(type)];
}

constexpr bool isInteger(DataType type) {
  return type <= DataType::u64;
}

/// nccl-tests' name of the type: "int8", "float", "half", "bfloat16" ...
const char* nameOf(DataType type);
/// "sum", "prod", "max", "min", "avg", "premulsum", "band", "bor", "bxor".
const char* nameOf(ReduceOp op);

}  // namespace falcon
