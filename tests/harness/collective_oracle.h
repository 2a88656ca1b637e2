// What a collective must give, computed the plain way: element by element, in whole numbers that every type holds
// exactly.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/call.h"

namespace falcon::test {

using Values = std::vector<std::int64_t>;

inline bool isUnsigned(DataType type) {
  return type == DataType::u8 || type == DataType::u32 || type == DataType::u64;
}
inline bool isFloat(DataType type) {
  return type == DataType::f16 || type == DataType::f32 || type == DataType::f64 || type == DataType::bf16;
}

inline bool isFloat8(DataType type) {
  return type == DataType::f8e4m3 || type == DataType::f8e5m2;
}

/// What rank `rank` multiplies by in a preMulSum. Rank 0's is positive: so a sum of zeros has no sign.
inline std::int64_t scalarOf(Rank rank, DataType type) {
  if (isFloat8(type)) return rank % 2 == 0 ? 1 : -1;
  if (isUnsigned(type)) return 1 + rank % 3;
  constexpr std::int64_t scalars[] = {1, -1, 2};
  return scalars[rank % 3];
}

/// Element `index` of what rank `rank` brings. Small enough that sums and products of 8 ranks are exact in every type
/// (bfloat16 has 8 bits of mantissa, int8 goes to 127).
inline std::int64_t inputValue(Rank rank, std::size_t index, DataType type, ReduceOp op) {
  const std::uint64_t mixed = (index * 2654435761u + static_cast<std::uint64_t>(rank) * 40503u) >> 3;
  if (op == ReduceOp::prod) {
    // At most six factors of two, negative ones where there are such.
    const bool two = rank < 6 && mixed % 3 == 0;
    const bool negative = !isUnsigned(type) && mixed % 5 == 0;
    return (two ? 2 : 1) * (negative ? -1 : 1);
  }
  // E5M2 has 3 bits of mantissa: whole numbers up to 8.
  if (isFloat8(type)) return static_cast<std::int64_t>(mixed % 3) - 1;
  const std::int64_t value = static_cast<std::int64_t>(mixed % 12);
  return isUnsigned(type) ? value : value - 5;
}

/// Elements of short floats that are whole numbers or their quotients: the encoding of the nearest value, ties to
/// even.
inline std::uint16_t encodeSmallFloat(double value, int mantissaBits, int exponentBits) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  auto mantissa = static_cast<std::int64_t>(std::nearbyint(std::ldexp(fraction, mantissaBits + 1)));
  if (mantissa == std::int64_t{1} << (mantissaBits + 1)) mantissa /= 2, ++exponent;
  const int bias = (1 << (exponentBits - 1)) - 1;
  const auto bits = ((exponent - 1 + bias) << mantissaBits) | (mantissa & ((1 << mantissaBits) - 1));
  return static_cast<std::uint16_t>(bits | (value < 0 ? 1 << (mantissaBits + exponentBits) : 0));
}

template <class T>
void storeAs(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

/// Writes `numerator / divisor` as the type has it; integers drop the fraction.
inline void storeValue(std::byte* to, DataType type, std::int64_t numerator, int divisor = 1) {
  const std::int64_t whole = numerator / divisor;
  // Short floats are computed in f32 and rounded once more.
  const float single = static_cast<float>(numerator) / static_cast<float>(divisor);
  switch (type) {
    case DataType::i8:
      return storeAs(to, static_cast<std::int8_t>(whole));
    case DataType::u8:
      return storeAs(to, static_cast<std::uint8_t>(whole));
    case DataType::i32:
      return storeAs(to, static_cast<std::int32_t>(whole));
    case DataType::u32:
      return storeAs(to, static_cast<std::uint32_t>(whole));
    case DataType::i64:
      return storeAs(to, whole);
    case DataType::u64:
      return storeAs(to, static_cast<std::uint64_t>(whole));
    case DataType::f16:
      return storeAs(to, encodeSmallFloat(single, 10, 5));
    case DataType::bf16:
      return storeAs(to, encodeSmallFloat(single, 7, 8));
    case DataType::f32:
      return storeAs(to, single);
    case DataType::f64:
      return storeAs(to, static_cast<double>(numerator) / divisor);
    case DataType::f8e4m3:
      return storeAs(to, static_cast<std::uint8_t>(encodeSmallFloat(single, 3, 4)));
    case DataType::f8e5m2:
      return storeAs(to, static_cast<std::uint8_t>(encodeSmallFloat(single, 2, 5)));
  }
}

inline std::vector<std::byte> encode(const Values& values, DataType type, int divisor = 1) {
  const std::size_t each = sizeOf(type);
  std::vector<std::byte> bytes(values.size() * each);
  for (size_t i = 0; i < values.size(); ++i) storeValue(bytes.data() + i * each, type, values[i], divisor);
  return bytes;
}

inline std::int64_t combine(std::int64_t one, std::int64_t two, ReduceOp op) {
  switch (op) {
    case ReduceOp::prod:
      return one * two;
    case ReduceOp::max:
      return std::max(one, two);
    case ReduceOp::min:
      return std::min(one, two);
    case ReduceOp::bitAnd:
      return one & two;
    case ReduceOp::bitOr:
      return one | two;
    case ReduceOp::bitXor:
      return one ^ two;
    default:
      return one + two;
  }
}

/// Elements in the send and receive buffers of one rank.
struct BufferSizes {
  std::size_t send, receive;
};
inline BufferSizes bufferSizes(const Call& call, int ranks) {
  const std::size_t all = call.count * ranks;
  switch (call.operation) {
    case Operation::allGather:
    case Operation::gather:
      return {call.count, all};
    case Operation::reduceScatter:
    case Operation::scatter:
      return {all, call.count};
    case Operation::allToAll:
      return {all, all};
    default:
      return {call.count, call.count};
  }
}

/// Elements [from, from + count) of what rank `rank` brings.
inline Values inputOf(const Call& call, Rank rank, std::size_t from, std::size_t count) {
  Values values(count);
  for (size_t i = 0; i < count; ++i) values[i] = inputValue(rank, from + i, call.type, call.reduction);
  return values;
}
inline Values inputOf(const Call& call, Rank rank, int ranks) {
  return inputOf(call, rank, 0, bufferSizes(call, ranks).send);
}

/// What rank `rank` must find in its receive buffer; empty where the buffer must not be touched.
inline std::vector<std::byte> expected(const Call& call, Rank rank, int ranks) {
  const auto reduced = [&](std::size_t from, std::size_t count) {
    const auto inputs = [&](Rank other) {
      Values values = inputOf(call, other, from, count);
      if (call.reduction == ReduceOp::preMulSum)
        for (std::int64_t& value : values) value *= scalarOf(other, call.type);
      return values;
    };
    Values sums = inputs(0);
    for (Rank other = 1; other < ranks; ++other) {
      const Values more = inputs(other);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] = combine(sums[i], more[i], call.reduction);
    }
    return encode(sums, call.type, call.reduction == ReduceOp::avg ? ranks : 1);
  };
  const auto block = [&](Rank of, std::size_t index) { return inputOf(call, of, index * call.count, call.count); };
  const auto join = [&](auto&& part) {
    Values all;
    for (Rank other = 0; other < ranks; ++other) {
      const Values values = part(other);
      all.insert(all.end(), values.begin(), values.end());
    }
    return encode(all, call.type);
  };
  switch (call.operation) {
    case Operation::allReduce:
      return reduced(0, call.count);
    case Operation::reduce:
      return rank == call.peer ? reduced(0, call.count) : std::vector<std::byte>();
    case Operation::reduceScatter:
      return reduced(rank * call.count, call.count);
    case Operation::broadcast:
      return encode(inputOf(call, call.peer, ranks), call.type);
    case Operation::allGather:
      return join([&](Rank other) { return inputOf(call, other, ranks); });
    case Operation::allToAll:
      return join([&](Rank other) { return block(other, rank); });
    case Operation::gather:
      if (rank != call.peer) return {};
      return join([&](Rank other) { return inputOf(call, other, ranks); });
    case Operation::scatter:
      return encode(block(call.peer, rank), call.type);
    default:
      return {};
  }
}

}  // namespace falcon::test
