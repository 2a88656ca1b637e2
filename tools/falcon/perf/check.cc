#include "perf/check.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace falcon::perf {
namespace {

// 0, 1 or 2.
int pattern(int rank, size_t index) {
  return static_cast<int>((static_cast<size_t>(rank) * 7 + index * 3 + index / 5) % 3);
}

float fromHalf(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const float sign = bits & 0x8000 ? -1.F : 1.F;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

std::uint16_t toHalfSmall(float value) {  // exact for the small whole numbers and halves used here
  if (value == 0) return 0;
  int exponent = 0;
  const float fraction = std::frexp(std::fabs(value), &exponent);
  const int mantissa = static_cast<int>(std::ldexp(fraction, 11)) & 1023;
  return static_cast<std::uint16_t>((value < 0 ? 0x8000 : 0) | ((exponent + 14) << 10) | mantissa);
}

float fromBfloat(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

template <class T>
void storeAs(void* at, double value) {
  const T typed = static_cast<T>(value);
  std::memcpy(at, &typed, sizeof typed);
}
template <class T>
double loadAs(const void* at) {
  T typed;
  std::memcpy(&typed, at, sizeof typed);
  return static_cast<double>(typed);
}

void store(void* at, ncclDataType_t type, double value) {
  switch (type) {
    case ncclInt8:
      return storeAs<std::int8_t>(at, value);
    case ncclUint8:
      return storeAs<std::uint8_t>(at, value);
    case ncclInt32:
      return storeAs<std::int32_t>(at, value);
    case ncclUint32:
      return storeAs<std::uint32_t>(at, value);
    case ncclInt64:
      return storeAs<std::int64_t>(at, value);
    case ncclUint64:
      return storeAs<std::uint64_t>(at, value);
    case ncclFloat32:
      return storeAs<float>(at, value);
    case ncclFloat64:
      return storeAs<double>(at, value);
    case ncclFloat16: {
      const std::uint16_t bits = toHalfSmall(static_cast<float>(value));
      std::memcpy(at, &bits, 2);
      return;
    }
    default: {
      const auto narrow = static_cast<float>(value);
      std::uint32_t bits;
      std::memcpy(&bits, &narrow, 4);
      bits >>= 16;
      std::memcpy(at, &bits, 2);
    }
  }
}

double load(const void* at, ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return loadAs<std::int8_t>(at);
    case ncclUint8:
      return loadAs<std::uint8_t>(at);
    case ncclInt32:
      return loadAs<std::int32_t>(at);
    case ncclUint32:
      return loadAs<std::uint32_t>(at);
    case ncclInt64:
      return loadAs<std::int64_t>(at);
    case ncclUint64:
      return loadAs<std::uint64_t>(at);
    case ncclFloat32:
      return loadAs<float>(at);
    case ncclFloat64:
      return loadAs<double>(at);
    default: {
      std::uint16_t bits;
      std::memcpy(&bits, at, 2);
      return type == ncclFloat16 ? fromHalf(bits) : fromBfloat(bits);
    }
  }
}

bool isFloat(ncclDataType_t type) {
  return type == ncclFloat16 || type == ncclFloat32 || type == ncclFloat64 || type == ncclBfloat16;
}

double wrapped(double value, ncclDataType_t type) {
  const auto whole = static_cast<std::uint64_t>(value);
  const size_t bits = 8 * elementSizeOf(type);
  const std::uint64_t kept = bits == 64 ? whole : whole & ((std::uint64_t{1} << bits) - 1);
  const bool negative = (type == ncclInt8 || type == ncclInt32 || type == ncclInt64) && kept >> (bits - 1) != 0;
  return negative ? static_cast<double>(kept) - std::ldexp(1.0, static_cast<int>(bits)) : static_cast<double>(kept);
}

// What `ranks` contributions to send element `index` reduce to.
double reduced(const Expectation& e, size_t index) {
  double value = pattern(0, index);
  for (int rank = 1; rank < e.ranks; ++rank) {
    const double next = pattern(rank, index);
    if (e.op == ncclProd)
      value *= next;
    else if (e.op == ncclMax)
      value = std::max(value, next);
    else if (e.op == ncclMin)
      value = std::min(value, next);
    else
      value += next;
  }
  // Integers wrap, as they do in the library; whole numbers are exact in a double up to 2^53.
  if (e.op != ncclAvg) return isFloat(e.type) || value > 0x1p53 ? value : wrapped(value, e.type);
  value /= e.ranks;
  return isFloat(e.type) ? value : std::trunc(value);
}

double expected(const Expectation& e, size_t index) {
  const size_t each = e.counts.parameter;
  switch (e.collective) {
    case Collective::allReduce:
    case Collective::reduce:
      return reduced(e, index);
    case Collective::reduceScatter:
      return reduced(e, static_cast<size_t>(e.rank) * each + index);
    case Collective::allGather:
    case Collective::gather:
      return pattern(static_cast<int>(index / each), index % each);
    case Collective::broadcast:
      return pattern(e.root, index);
    case Collective::allToAll:
      return pattern(static_cast<int>(index / each), static_cast<size_t>(e.rank) * each + index % each);
    case Collective::scatter:
      return pattern(e.root, static_cast<size_t>(e.rank) * each + index);
    case Collective::sendReceive:
      return pattern((e.rank + e.ranks - 1) % e.ranks, index);
  }
  return 0;
}

// Half a unit in the last place a rounding, for averages and products that do not come out whole.
double tolerance(const Expectation& e, double value) {
  if (!isFloat(e.type)) return 0;
  const double unit = e.type == ncclFloat64   ? 0x1p-52
                      : e.type == ncclFloat32 ? 0x1p-23
                      : e.type == ncclFloat16 ? 0x1p-10
                                              : 0x1p-7;
  return std::fabs(value) * unit * (e.ranks + 1);
}

}  // namespace

size_t elementSizeOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 4;
  }
}

void fill(void* buffer, size_t elements, ncclDataType_t type, int rank, size_t firstIndex) {
  auto* bytes = static_cast<char*>(buffer);
  const size_t size = elementSizeOf(type);
  for (size_t i = 0; i < elements; ++i) store(bytes + i * size, type, pattern(rank, firstIndex + i));
}

size_t countWrong(const void* result, const Expectation& e) {
  if ((e.collective == Collective::reduce || e.collective == Collective::gather) && e.rank != e.root) return 0;
  const auto* bytes = static_cast<const char*>(result);
  const size_t size = elementSizeOf(e.type);
  size_t wrong = 0;
  for (size_t i = 0; i < e.counts.receive; ++i) {
    const double value = expected(e, i);
    if (!(std::fabs(load(bytes + i * size, e.type) - value) <= tolerance(e, value))) ++wrong;
  }
  return wrong;
}

}  // namespace falcon::perf
