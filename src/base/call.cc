#include "base/call.h"

namespace falcon {

const char* nameOf(Operation operation) {
  constexpr const char* names[operationCount] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce",
                                                 "Send",      "Recv",   "AlltoAll",  "Gather",        "Scatter"};
  return names[static_cast<int>(operation)];
}

}  // namespace falcon
