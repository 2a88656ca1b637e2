// Version 5 of NCCL's tuner plugin interface (2.28): it learns the communicator, and may change NCCL's constants.
#pragma once

#include "plugin/tuner/tuner_abi.h"

namespace falcon::plugin {

using TunerConstantsV5 = TunerConstants<4>;

struct TunerV5 {
  const char* name;
  ResultCode (*init)(void** context, std::uint64_t communicator, std::size_t ranks, std::size_t nodes, Logger logger,
                     NvlDomains* domains, TunerConstantsV5* constants);
  GetCollInfo getCollInfo;
  ResultCode (*finalize)(void* context);
};

}  // namespace falcon::plugin
