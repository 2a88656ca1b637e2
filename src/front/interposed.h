// nccl.h and nccl_falcon.h with their functions visible: to be included before anything else, since the first
// declaration decides whether a name can leave the library.
#pragma once

#ifdef NCCL_H_
#error "front/interposed.h comes first"
#endif
#pragma GCC visibility push(default)
#include "nccl_falcon.h"
#pragma GCC visibility pop
