// Version 4 of NCCL's tuner plugin interface (2.25 on).
#pragma once

#include "plugin/tuner/tuner_abi.h"

namespace falcon::plugin {

struct TunerV4 {
  const char* name;
  ResultCode (*init)(std::size_t ranks, std::size_t nodes, Logger logger, void** context);
  GetCollInfo getCollInfo;
  ResultCode (*destroy)(void* context);
};

}  // namespace falcon::plugin
