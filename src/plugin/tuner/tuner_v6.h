// Version 6 of NCCL's tuner plugin interface (2.30): the size of chunks too.
#pragma once

#include "plugin/tuner/tuner_v5.h"

namespace falcon::plugin {

/// Optional: null is possible.
using GetChunkSize = ResultCode (*)(void* context, TunedFunction function, std::size_t bytes, int algorithm,
                                    int protocol, int channels, std::size_t* chunkBytes);

/// Versions from 6 on differ in NCCL's constants only.
template <class Constants>
struct TunerFrom6 {
  const char* name;
  ResultCode (*init)(void** context, std::uint64_t communicator, std::size_t ranks, std::size_t nodes, Logger logger,
                     NvlDomains* domains, Constants* constants);
  GetCollInfo getCollInfo;
  ResultCode (*finalize)(void* context);
  GetChunkSize getChunkSize;
};
using TunerV6 = TunerFrom6<TunerConstantsV5>;

}  // namespace falcon::plugin
