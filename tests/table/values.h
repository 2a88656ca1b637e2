// Arguments of the table's calls: each is unlike the others of its call, and says which it is.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "table/beyond_header.h"

namespace falcon::table {

/// What arguments are made of.
struct Making {
  /// Also what no library could make sense of: numbers out of every range, handles of nobody.
  bool wild = false;
  ncclComm_t communicator = nullptr;
  ncclWindow_t window = nullptr;
  void* registration = nullptr;
  ncclRedOp_t operation = ncclMax;
  ncclUniqueId id{};
  int call = 0;      ///< the function's place in the table
  int argument = 0;  ///< the argument's place in the call

  int number() const { return 1000 + 20 * call + argument; }
};

/// Memory that a pointer argument leads to: one page for each argument of a call.
struct Arena {
  static constexpr std::size_t pageBytes = 4096;
  alignas(pageBytes) unsigned char pages[16][pageBytes];
};
inline Arena arena;

/// Of the numbers whose meaning limits them.
struct Limited {
  std::string_view name;
  int value;
  bool always = false;  ///< it is the length of what the caller gives
};
constexpr Limited limited[] = {
    {"root", 2},
    {"peer", 2},
    {"nranks", 1},
    {"rank", 0},
    {"myrank", 0},
    {"nId", 1},
    {"ndev", 2, true},
    {"color", 3},
    {"excludeRanksCount", 1},
    {"nDesc", 1},
    {"shrinkFlags", 0},
    {"revokeFlags", 0},
    {"winFlags", 1},
    {"flags", 1},
    {"datatype", ncclBfloat16},
    {"op", ncclMax},
    {"residence", ncclScalarDevice},
    {"stat", ncclStatGpuMemTotal},
    {"result", ncclInvalidUsage},
};

inline int numberFor(const Making& making, std::string_view name) {
  for (const Limited& each : limited)
    if (each.name == name && (each.always || !making.wild)) return each.value;
  return making.number();
}

template <class T>
void fill(T& value, const Making&, std::string_view) {
  std::memset(&value, 0, sizeof value);  // for the answer
}
inline void fill(ncclUniqueId& id, const Making& making, std::string_view) {
  id = making.id;
}
inline void fill(ncclConfig_t& config, const Making& making, std::string_view) {
  config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.maxCTAs = 3 + making.call;
  config.trafficClass = 11;
  config.commName = "table";
  config.numRmaCtx = 5;
}
inline void fill(ncclCollConfig_t& config, const Making& making, std::string_view) {
  config = NCCL_COLLCONFIG_INITIALIZER;
  config.maxCTAs = 3 + making.call;
  config.algSelection = "ring";
  config.userProfilerTag = 4711;
}
inline void fill(ncclSimInfo_t& info, const Making&, std::string_view) {
  info = NCCL_SIM_INFO_INITIALIZER;
}
inline void fill(ncclEncryptionConfig_t& config, const Making&, std::string_view) {
  config = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
  config.psk = "/nowhere/key";
}
inline void fill(ncclWaitSignalDesc_t& signal, const Making& making, std::string_view) {
  signal = {making.number(), 0, 3, 2};
}
inline void fill(int& value, const Making&, std::string_view name) {
  value = name == "excludeRanksList" ? 1 : 0;
  if (name == "devlist") (&value)[1] = 1;
}

template <class T>
T makeArgument(const Making& making, std::string_view name) {
  if constexpr (std::is_same_v<T, ncclComm_t>) {
    return making.communicator;
  } else if constexpr (std::is_same_v<T, ncclWindow_t>) {
    return making.window;
  } else if constexpr (std::is_same_v<T, ncclUniqueId>) {
    return making.id;
  } else if constexpr (std::is_same_v<T, ncclTeam_t>) {
    return {making.number(), 1, 2};
  } else if constexpr (std::is_same_v<T, ncclMultimemHandle_t>) {
    return {arena.pages[making.argument]};
  } else if constexpr (std::is_same_v<T, const char*>) {
    return "NCCL_OF_THE_VENDOR";
  } else if constexpr (std::is_pointer_v<T>) {
    using Target = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_same_v<T, void*>)
      if (name == "handle") return making.registration;
    unsigned char* const page = arena.pages[making.argument];
    std::memset(page, 0, Arena::pageBytes);
    if constexpr (!std::is_void_v<Target> && requires { sizeof(Target); })
      fill(*reinterpret_cast<Target*>(page), making, name);
    return reinterpret_cast<T>(page);
  } else if constexpr (std::is_same_v<T, ncclRedOp_t>) {
    if (!making.wild) return making.operation;
    const int number = making.number();
    T value;
    std::memcpy(&value, &number, sizeof value);
    return value;
  } else {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>, "an argument of a kind that the table does not know");
    const int number = numberFor(making, name);
    T value{};
    std::memcpy(&value, &number, sizeof value < sizeof number ? sizeof value : sizeof number);
    if constexpr (std::is_same_v<T, std::size_t>)
      if (making.wild) value |= std::size_t{1} << 63;
    return value;
  }
}

}  // namespace falcon::table
