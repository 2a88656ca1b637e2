#include "oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "number.h"

namespace falcon::property {
namespace {

/// Numbers that neither overflow nor underflow in a sum of 16, times a scalar below 2.
struct Magnitudes {
  int least, most;  ///< exponents
};
Magnitudes magnitudesOf(const TypeFacts& type) {
  if (type.exponentBits == 11) return {-60, 60};
  if (type.exponentBits == 8) return {-30, 20};
  if (type.mantissaBits == 3) return {-7, 1};  // e4m3: up to 448, subnormal below 2^-6
  return {-15, 5};                             // f16 and e5m2: subnormal below 2^-14
}

/// Ranks whose factors are not 1: so that products stay in the type's range.
int factorsOf(const TypeFacts& type) {
  if (type.exponentBits >= 8) return 16;
  return type.mantissaBits == 10 ? 8 : 4;
}

std::uint64_t exactFloat(const CallSpec& call, int rank, std::uint64_t random, const TypeFacts& type) {
  if (call.reduction == ncclProd) {
    // At most six factors of two.
    const int magnitude = rank < (type.bytes == 1 ? 3 : 6) && random % 3 == 0 ? 2 : 1;
    return encodeWhole(random & 64 ? -magnitude : magnitude, type);
  }
  // E5M2 holds whole numbers up to 8, E4M3 up to 16, bfloat16 up to 256.
  if (type.bytes == 1) return rank < 8 ? encodeWhole(static_cast<int>(random % 3) - 1, type) : 0;
  return encodeWhole(static_cast<int>(random % 15) - 7, type);
}

std::uint64_t anyFloat(const CallSpec& call, int rank, std::uint64_t random, const TypeFacts& type) {
  const bool negative = random & 1;
  const std::uint64_t mantissa = random >> 12;
  if (call.reduction == ncclProd) {
    if (rank >= factorsOf(type)) return encodeWhole(negative ? -1 : 1, type);
    return encodeFloat(negative, random & 2 ? 0 : -1, mantissa, type);
  }
  const auto [least, most] = magnitudesOf(type);
  const auto exponent = least + static_cast<int>((random >> 1 & 0x7ff) % (most - least + 1));
  return encodeFloat(negative, exponent, mantissa, type);
}

std::uint64_t extremeFloat(const CallSpec& call, int rank, std::uint64_t random, const TypeFacts& type) {
  // 8-bit floats have no arithmetic with infinities to speak of: what is too large becomes the largest number.
  if (type.bytes == 1 || mix(random) % 24 != 0) return anyFloat(call, rank, random, type);
  const std::uint64_t infinity = ((std::uint64_t{1} << type.exponentBits) - 1) << type.mantissaBits;
  const std::uint64_t sign = std::uint64_t{1} << (type.exponentBits + type.mantissaBits);
  const std::uint64_t special[] = {infinity, infinity | sign, infinity | (infinity >> 1 & ~infinity) | 1};
  return special[random % 3];
}

std::uint64_t integer(const CallSpec& call, std::uint64_t random, const TypeFacts& type) {
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - 8 * type.bytes);
  const std::uint64_t top = all ^ (all >> 1);
  if (call.style == Style::exact) return random % 7;
  const std::uint64_t extremes[] = {0, 1, all, top, all >> 1};
  return call.style == Style::extremes ? extremes[random % 5] : random & all;
}

std::uint64_t elementOf(const CallSpec& call, int rank, std::uint64_t random) {
  const TypeFacts& type = factsOf(call.type);
  if (!reduces(call.what)) return random >> (64 - 8 * type.bytes);
  if (!type.isFloat) return integer(call, random, type);
  if (call.style == Style::exact) return exactFloat(call, rank, random, type);
  if (call.style == Style::any) return anyFloat(call, rank, random, type);
  return extremeFloat(call, rank, random, type);
}

/// All ranks' contributions to one element of a reduction.
class Reduction {
 public:
  Reduction(const CallSpec& call, int ranks) : call_(call), type_(factsOf(call.type)), ranks_(ranks) {
    for (int rank = 0; rank < ranks; ++rank) scalars_.push_back(scalarBits(call, rank));
  }

  bool holds(std::size_t index, std::uint64_t got) const {
    return type_.isFloat ? floatHolds(index, got) : integerOf(index) == got;
  }

 private:
  std::uint64_t integerOf(std::size_t index) const {
    const std::uint64_t all = ~std::uint64_t{0} >> (64 - 8 * type_.bytes);
    std::uint64_t result = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::uint64_t input = inputBits(call_, rank, index);
      if (call_.reduction == preMulSum) {
        result += input * scalars_[rank];
        continue;
      }
      result = rank == 0 ? input : combined(result, input);
    }
    result &= all;
    if (call_.reduction == ncclAvg && type_.isSigned)
      result = static_cast<std::uint64_t>(signExtended(result, type_) / ranks_);
    if (call_.reduction == ncclAvg && !type_.isSigned) result /= static_cast<std::uint64_t>(ranks_);
    return result & all;
  }
  std::uint64_t combined(std::uint64_t one, std::uint64_t two) const {
    const bool less = type_.isSigned ? signExtended(one, type_) < signExtended(two, type_) : one < two;
    switch (call_.reduction) {
      case ncclProd:
        return one * two;
      case ncclMax:
        return less ? two : one;
      case ncclMin:
        return less ? one : two;
      default:
        return one + two;
    }
  }

  bool floatHolds(std::size_t index, std::uint64_t got) const {
    const Real result = valueOf(got, type_);
    switch (call_.reduction) {
      case ncclMax:
      case ncclMin:
        return extremeHolds(index, result);
      case ncclProd:
        return productHolds(index, result);
      default:
        return sumHolds(index, result);
    }
  }
  /// A NaN beside a number is ignored.
  bool extremeHolds(std::size_t index, Real result) const {
    Real best = NAN;
    for (int rank = 0; rank < ranks_; ++rank) {
      const Real input = valueOf(inputBits(call_, rank, index), type_);
      if (std::isnan(best) || (call_.reduction == ncclMax ? input > best : input < best)) best = input;
    }
    return std::isnan(best) ? std::isnan(result) : result == best;
  }
  bool productHolds(std::size_t index, Real result) const {
    Real product = 1;
    for (int rank = 0; rank < ranks_; ++rank) product *= valueOf(inputBits(call_, rank, index), type_);
    return near(result, product, std::fabs(product) * grown(ranks_ - 1));
  }
  bool sumHolds(std::size_t index, Real result) const {
    Real sum = 0, magnitudes = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      Real input = valueOf(inputBits(call_, rank, index), type_);
      if (call_.reduction == preMulSum) input *= valueOf(scalars_[rank], type_);
      sum += input;
      magnitudes += std::fabs(input);
    }
    if (call_.reduction == ncclAvg) sum /= ranks_, magnitudes /= ranks_;
    if (call_.style == Style::exact && call_.reduction != ncclAvg) return result == sum;
    // n - 1 additions are never further off than n - 1 roundings of the sum of magnitudes, in any order; what follows
    // another rounding multiplies.
    const Real rounding = roundingOf(type_);
    Real allowed = (ranks_ - 1) * rounding;
    if (call_.reduction == preMulSum) allowed = grown(ranks_);
    if (call_.reduction == ncclAvg) allowed = call_.style == Style::exact ? grown(2) : grown(ranks_ + 1);
    // Products and quotients, not sums, may be rounded below the normal numbers.
    const Real underflow = call_.reduction == ncclSum ? 0 : ranks_ * smallestOf(type_);
    return near(result, sum, magnitudes * allowed + underflow);
  }
  /// `roundings` in a row, relative.
  Real grown(int roundings) const { return std::pow(1 + roundingOf(type_), static_cast<Real>(roundings)) - 1; }
  static bool near(Real result, Real wanted, Real allowed) {
    if (std::isnan(wanted)) return std::isnan(result);
    if (std::isinf(wanted)) return result == wanted;
    // The oracle's own roundings are 2^11 times smaller than those of f64.
    return std::fabs(result - wanted) <= allowed * (1 + Real{0x1p-8}) || result == wanted;
  }

  const CallSpec& call_;
  const TypeFacts& type_;
  const int ranks_;
  std::vector<std::uint64_t> scalars_;
};

/// Whose element `index` of `rank`'s result is, where elements are only moved.
struct Origin {
  int rank;
  std::size_t index;
};
Origin originOf(const CallSpec& call, int rank, std::size_t index) {
  const auto block = static_cast<int>(index / std::max<std::size_t>(call.count, 1));
  const std::size_t inside = index % std::max<std::size_t>(call.count, 1);
  switch (call.what) {
    case What::broadcast:
      return {call.root, index};
    case What::scatter:
      return {call.root, rank * call.count + index};
    case What::allToAll:
      return {block, rank * call.count + inside};
    case What::message:
      return {call.from, index};
    default:  // AllGather, Gather
      return {block, inside};
  }
}

std::string hex(std::uint64_t bits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(bits));
  return text;
}

}  // namespace

std::uint64_t inputBits(const CallSpec& call, int rank, std::size_t index) {
  return elementOf(call, rank, mix(call.seed ^ (index * 64 + static_cast<std::uint64_t>(rank))));
}

std::uint64_t scalarBits(const CallSpec& call, int rank) {
  const TypeFacts& type = factsOf(call.type);
  const std::uint64_t random = mix(~call.seed + static_cast<std::uint64_t>(rank));
  if (!type.isFloat) return integer(call, random, type);
  if (call.style == Style::exact)
    return encodeWhole((random & 1 ? -1 : 1) * (type.bytes > 1 && random & 2 ? 2 : 1), type);
  return encodeFloat(random & 1, random & 2 ? 0 : -1, random >> 8, type);
}

std::string wrongIn(const std::byte* received, const CallSpec& call, int rank, int ranks) {
  const int bytes = factsOf(call.type).bytes;
  const std::size_t elements = receiveElements(call, rank, ranks);
  const Reduction reduction(call, ranks);
  for (std::size_t i = 0; i < elements; ++i) {
    const std::uint64_t got = loadBits(received + i * bytes, bytes);
    if (!reduces(call.what)) {
      const Origin origin = originOf(call, rank, i);
      const std::uint64_t wanted = inputBits(call, origin.rank, origin.index);
      if (got != wanted)
        return "element " + std::to_string(i) + " is " + hex(got) + " instead of " + hex(wanted) + ", element " +
               std::to_string(origin.index) + " of rank " + std::to_string(origin.rank);
      continue;
    }
    const std::size_t index = call.what == What::reduceScatter ? rank * call.count + i : i;
    if (reduction.holds(index, got)) continue;
    std::string text = "element " + std::to_string(i) + " is " + hex(got) + ", of";
    for (int other = 0; other < ranks; ++other) text += " " + hex(inputBits(call, other, index));
    return text;
  }
  return "";
}

}  // namespace falcon::property
