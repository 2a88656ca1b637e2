// Our log lines go where NCCL's go.
#pragma once

#include "transport/plugin/net_abi.h"

namespace falcon::net {

/// From now on, and for as long as the process lives; NCCL says at each init where.
void logTo(transport::net::Logger logger);

}  // namespace falcon::net
