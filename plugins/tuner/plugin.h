// What the exported structs of all versions have alike: nothing is thrown into NCCL.
#pragma once

#include "plugin/tuner/tuner_abi.h"

namespace falcon::tuner {

inline constexpr const char* pluginName = "Falcon";

/// Reads the rules. An error where they cannot be read: NCCL then goes on without a tuner, on this rank as on the
/// others that have the same file.
plugin::ResultCode begin(void** context, std::size_t ranks) noexcept;
/// The same as versions from 5 on have it, whose constants stay as they are.
template <class Constants>
plugin::ResultCode beginFrom5(void** context, std::uint64_t, std::size_t ranks, std::size_t, plugin::Logger,
                              plugin::NvlDomains*, Constants*) {
  return begin(context, ranks);
}
plugin::ResultCode getCollInfo(void* context, plugin::TunedFunction function, std::size_t bytes, int operations,
                               float** costs, int algorithms, int protocols, int registered, int* channels);
plugin::ResultCode end(void* context);

}  // namespace falcon::tuner
