// Compiled with -O3 (see CMakeLists.txt). One loop for all, compiled twice: as it is, and inlined into functions for
// AVX2 that are chosen at run time. Not target_clones: its resolvers run before sanitizers are ready.
#include "collectives/reduce_kernels.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "collectives/float8.h"
#include "collectives/half_float.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#define FALCON_AVX2 __attribute__((target("avx2,f16c")))
#endif

namespace falcon::collectives {
namespace {

#define FALCON_INLINE [[gnu::always_inline]] inline
// Turns of the loop that follows do not depend on each other. clang, which compiles this in the sanitizer builds only,
// is not told.
#if defined(__clang__)
#define FALCON_NO_DEPENDENCE
#else
#define FALCON_NO_DEPENDENCE _Pragma("GCC ivdep")
#endif

// How a type lies in memory (Stored) and how it is computed with (Value). Integers are computed unsigned, so that they
// wrap; only comparison and division see the sign.
template <class T>
struct Plain {
  using Stored = T;
  using Value = T;
  FALCON_INLINE static Value load(Stored stored) { return stored; }
  FALCON_INLINE static Stored store(Value value) { return value; }
};
struct Half {
  using Stored = std::uint16_t;
  using Value = float;
  FALCON_INLINE static Value load(Stored stored) { return floatFromHalf(stored); }
  FALCON_INLINE static Stored store(Value value) { return halfFromFloat(value); }
};
struct Brain {
  using Stored = std::uint16_t;
  using Value = float;
  FALCON_INLINE static Value load(Stored stored) { return floatFromBrain(stored); }
  FALCON_INLINE static Stored store(Value value) { return brainFromFloat(value); }
};
struct E4m3 {
  using Stored = std::uint8_t;
  using Value = float;
  FALCON_INLINE static Value load(Stored stored) { return floatFromE4m3(stored); }
  FALCON_INLINE static Stored store(Value value) { return e4m3FromFloat(value); }
};
struct E5m2 {
  using Stored = std::uint8_t;
  using Value = float;
  FALCON_INLINE static Value load(Stored stored) { return floatFromE5m2(stored); }
  FALCON_INLINE static Stored store(Value value) { return e5m2FromFloat(value); }
};

struct Sum {
  template <class T>
  FALCON_INLINE static T of(T one, T two) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(static_cast<U>(one) + static_cast<U>(two)));
    } else {
      return one + two;
    }
  }
};
struct Prod {
  template <class T>
  FALCON_INLINE static T of(T one, T two) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(static_cast<U>(one) * static_cast<U>(two)));
    } else {
      return one * two;
    }
  }
};
struct Max {
  template <class T>
  FALCON_INLINE static T of(T one, T two) {
    if constexpr (std::is_integral_v<T>) return one > two ? one : two;
    return ((one > two) | (two != two)) ? one : two;
  }
};
struct Min {
  template <class T>
  FALCON_INLINE static T of(T one, T two) {
    if constexpr (std::is_integral_v<T>) return one < two ? one : two;
    return ((one < two) | (two != two)) ? one : two;
  }
};

struct BitAnd {
  template <class T>
  FALCON_INLINE static T of(T one, T two) {
    return static_cast<T>(one & two);
  }
};
struct BitOr {
  template <class T>
  FALCON_INLINE static T of(T one, T two) {
    return static_cast<T>(one | two);
  }
};
struct BitXor {
  template <class T>
  FALCON_INLINE static T of(T one, T two) {
    return static_cast<T>(one ^ two);
  }
};

template <class Type, class Op>
FALCON_INLINE void combineLoop(std::byte* result, const std::byte* one, const std::byte* two, std::size_t begin,
                               std::size_t end) {
  using Stored = typename Type::Stored;
  // `result` may be an operand itself, which is no dependence between turns.
  FALCON_NO_DEPENDENCE
  for (std::size_t i = begin; i < end; ++i) {
    Stored left, right;
    std::memcpy(&left, one + i * sizeof(Stored), sizeof left);
    std::memcpy(&right, two + i * sizeof(Stored), sizeof right);
    const Stored combined = Type::store(Op::of(Type::load(left), Type::load(right)));
    std::memcpy(result + i * sizeof(Stored), &combined, sizeof combined);
  }
}

template <class Type>
FALCON_INLINE void scaleLoop(std::byte* result, const std::byte* values, const std::byte* scalar, std::size_t begin,
                             std::size_t end) {
  using Stored = typename Type::Stored;
  Stored stored;
  std::memcpy(&stored, scalar, sizeof stored);
  const auto factor = Type::load(stored);
  FALCON_NO_DEPENDENCE
  for (std::size_t i = begin; i < end; ++i) {
    Stored value;
    std::memcpy(&value, values + i * sizeof(Stored), sizeof value);
    value = Type::store(Prod::of(Type::load(value), factor));
    std::memcpy(result + i * sizeof(Stored), &value, sizeof value);
  }
}

template <class Type>
FALCON_INLINE void divideLoop(std::byte* values, std::size_t begin, std::size_t end, int divisor) {
  using Stored = typename Type::Stored;
  using Value = typename Type::Value;
  FALCON_NO_DEPENDENCE
  for (std::size_t i = begin; i < end; ++i) {
    Stored stored;
    std::memcpy(&stored, values + i * sizeof(Stored), sizeof stored);
    Value value = Type::load(stored);
    // Wide enough for the divisor, which an int8 may not hold.
    if constexpr (std::is_integral_v<Value> && sizeof(Value) < sizeof(std::int64_t)) {
      value = static_cast<Value>(static_cast<std::int64_t>(value) / divisor);
    } else {
      value = value / static_cast<Value>(divisor);
    }
    stored = Type::store(value);
    std::memcpy(values + i * sizeof(Stored), &stored, sizeof stored);
  }
}

struct Portable {
  template <class Type, class Op>
  static void combine(std::byte* result, const std::byte* one, const std::byte* two, std::size_t count) {
    combineLoop<Type, Op>(result, one, two, 0, count);
  }
  template <class Type>
  static void divide(std::byte* values, std::size_t count, int divisor) {
    divideLoop<Type>(values, 0, count, divisor);
  }
  template <class Type>
  static void scale(std::byte* result, const std::byte* values, const std::byte* scalar, std::size_t count) {
    scaleLoop<Type>(result, values, scalar, 0, count);
  }
};

#if defined(FALCON_AVX2)

FALCON_INLINE FALCON_AVX2 __m256 loadHalves(const std::byte* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
FALCON_INLINE FALCON_AVX2 void storeHalves(std::byte* to, __m256 values) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
}

template <class Op>
FALCON_INLINE FALCON_AVX2 __m256 combineEight(__m256 one, __m256 two) {
  if constexpr (std::is_same_v<Op, Sum>) return _mm256_add_ps(one, two);
  if constexpr (std::is_same_v<Op, Prod>) return _mm256_mul_ps(one, two);
  // Both instructions give the second operand when there is a NaN; where the second is one, take the first.
  const __m256 secondIsNan = _mm256_cmp_ps(two, two, _CMP_UNORD_Q);
  const __m256 chosen = std::is_same_v<Op, Max> ? _mm256_max_ps(one, two) : _mm256_min_ps(one, two);
  return _mm256_blendv_ps(chosen, one, secondIsNan);
}

struct Avx2 {
  template <class Type, class Op>
  FALCON_AVX2 static void combine(std::byte* result, const std::byte* one, const std::byte* two, std::size_t count) {
    std::size_t done = 0;
    if constexpr (std::is_same_v<Type, Half>) {
      for (; done + 8 <= count; done += 8)
        storeHalves(result + 2 * done, combineEight<Op>(loadHalves(one + 2 * done), loadHalves(two + 2 * done)));
    }
    combineLoop<Type, Op>(result, one, two, done, count);
  }
  template <class Type>
  FALCON_AVX2 static void divide(std::byte* values, std::size_t count, int divisor) {
    std::size_t done = 0;
    if constexpr (std::is_same_v<Type, Half>) {
      const __m256 divisors = _mm256_set1_ps(static_cast<float>(divisor));
      for (; done + 8 <= count; done += 8)
        storeHalves(values + 2 * done, _mm256_div_ps(loadHalves(values + 2 * done), divisors));
    }
    divideLoop<Type>(values, done, count, divisor);
  }
  template <class Type>
  FALCON_AVX2 static void scale(std::byte* result, const std::byte* values, const std::byte* scalar,
                                std::size_t count) {
    scaleLoop<Type>(result, values, scalar, 0, count);
  }
};

#else
using Avx2 = Portable;
#endif

/// `Op` for integers; null for floats, whose bits are no numbers.
template <class Set, class Type, class Op>
CombineKernel bitwiseOf() {
  if constexpr (std::is_integral_v<typename Type::Value>) return Set::template combine<Type, Op>;
  return nullptr;
}

template <class Set, class Type>
CombineKernel combineOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
    case ReduceOp::preMulSum:
      return Set::template combine<Type, Sum>;
    case ReduceOp::prod:
      return Set::template combine<Type, Prod>;
    case ReduceOp::max:
      return Set::template combine<Type, Max>;
    case ReduceOp::min:
      return Set::template combine<Type, Min>;
    case ReduceOp::bitAnd:
      return bitwiseOf<Set, Type, BitAnd>();
    case ReduceOp::bitOr:
      return bitwiseOf<Set, Type, BitOr>();
    case ReduceOp::bitXor:
      return bitwiseOf<Set, Type, BitXor>();
  }
  return nullptr;
}

/// Calls `visit` with the Type that belongs to `type`.
template <class Visit>
auto visitType(DataType type, Visit visit) -> decltype(visit(Half())) {
  switch (type) {
    case DataType::i8:
      return visit(Plain<std::int8_t>());
    case DataType::u8:
      return visit(Plain<std::uint8_t>());
    case DataType::i32:
      return visit(Plain<std::int32_t>());
    case DataType::u32:
      return visit(Plain<std::uint32_t>());
    case DataType::i64:
      return visit(Plain<std::int64_t>());
    case DataType::u64:
      return visit(Plain<std::uint64_t>());
    case DataType::f16:
      return visit(Half());
    case DataType::f32:
      return visit(Plain<float>());
    case DataType::f64:
      return visit(Plain<double>());
    case DataType::bf16:
      return visit(Brain());
    case DataType::f8e4m3:
      return visit(E4m3());
    case DataType::f8e5m2:
      return visit(E5m2());
  }
  return nullptr;
}

#if defined(FALCON_AVX2)
KernelSet askProcessor() {
  // Not __builtin_cpu_supports("f16c"): Clang knows that name from version 15 on.
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool halfConversion = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  return __builtin_cpu_supports("avx2") && halfConversion ? KernelSet::avx2 : KernelSet::portable;
}
#endif

}  // namespace

KernelSet bestKernelSet() {
#if defined(FALCON_AVX2)
  // Asked once: in virtual machines the question costs microseconds.
  static constinit std::atomic<int> known{-1};
  int set = known.load(std::memory_order_relaxed);
  if (set < 0) [[unlikely]] {
    set = static_cast<int>(askProcessor());
    known.store(set, std::memory_order_relaxed);
  }
  return static_cast<KernelSet>(set);
#else
  return KernelSet::portable;
#endif
}

CombineKernel combineKernel(DataType type, ReduceOp op, KernelSet set) {
  return visitType(type, [&](auto kind) -> CombineKernel {
    using Type = decltype(kind);
    return set == KernelSet::avx2 ? combineOf<Avx2, Type>(op) : combineOf<Portable, Type>(op);
  });
}

DivideKernel divideKernel(DataType type, KernelSet set) {
  return visitType(type, [&](auto kind) -> DivideKernel {
    using Type = decltype(kind);
    return set == KernelSet::avx2 ? DivideKernel(Avx2::divide<Type>) : DivideKernel(Portable::divide<Type>);
  });
}

ScaleKernel scaleKernel(DataType type, KernelSet set) {
  return visitType(type, [&](auto kind) -> ScaleKernel {
    using Type = decltype(kind);
    return set == KernelSet::avx2 ? ScaleKernel(Avx2::scale<Type>) : ScaleKernel(Portable::scale<Type>);
  });
}

}  // namespace falcon::collectives
