// What a library that NVTX loads must know of it: facts of NVTX's binary interface, version 3, so that no header of the
// CUDA toolkit is needed. tests/abi compares with the real header where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace falcon::api::nvtx {

inline constexpr std::uint32_t version = 3;
inline constexpr int noTracking = -2;  ///< what Push and Pop give where no level is known

/// What getExportTable() is asked for.
enum class ExportTable : std::uint32_t { callbacks = 1, versionInfo = 3 };
using GetExportTable = const void* (*)(std::uint32_t table);

using Function = void (*)();
/// Each entry says where NVTX keeps the pointer of a function; number 0 is none.
using FunctionTable = Function**;

struct CallbackTable {
  std::size_t bytes;
  int (*moduleFunctions)(int module, FunctionTable* table, unsigned* entries);  ///< 0: no such module
};
struct VersionInfo {
  std::size_t bytes;
  std::uint32_t version;
  std::uint32_t unused;
  void (*setInjectionVersion)(std::uint32_t version);
};

/// The functions of the module without domains.
namespace core {
inline constexpr int module = 1;
enum Number : unsigned {
  rangeStartEx = 4,
  rangeStartA = 5,
  rangeStartW = 6,
  rangeEnd = 7,
  rangePushEx = 8,
  rangePushA = 9,
  rangePushW = 10,
  rangePop = 11,
};
}  // namespace core

/// The functions of the module with domains.
namespace domains {
inline constexpr int module = 5;
enum Number : unsigned {
  rangeStartEx = 2,
  rangeEnd = 3,
  rangePushEx = 4,
  rangePop = 5,
  registerStringA = 10,
  registerStringW = 11,
  createA = 12,
  createW = 13,
};
}  // namespace domains

struct EventAttributes {
  enum MessageType : std::int32_t { none = 0, narrow = 1, wide = 2, registered = 3 };
  std::uint16_t version;
  std::uint16_t bytes;
  std::uint32_t category;
  std::int32_t colorType;
  std::uint32_t color;
  std::int32_t payloadType;
  std::int32_t unused;
  std::uint64_t payload;
  std::int32_t messageType;
  const void* message;  ///< char, wchar_t, or what a registration gave
};
static_assert(sizeof(EventAttributes) == 48);

}  // namespace falcon::api::nvtx
