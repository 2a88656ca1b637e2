// Host streams for tests, and two ranks in one thread: what one of them queues cannot be done before the other comes.
#pragma once

#include <array>
#include <utility>

#include "abi/ranks.h"

namespace falcon::abi {

/// Destroyed at the end.
struct Stream {
  ncclFalconStream_t handle = nullptr;
  Stream() { EXPECT_EQ(ncclSuccess, ncclFalconStreamCreate(&handle)) << ncclGetLastError(nullptr); }
  Stream(const Stream&) = delete;
  ~Stream() { EXPECT_EQ(ncclSuccess, ncclFalconStreamDestroy(handle)); }
  operator ncclFalconStream_t() const { return handle; }
};

inline ncclResult_t synchronized(ncclFalconStream_t stream) {
  return ncclFalconStreamSynchronize(stream);
}

/// The two ranks of a communicator.
struct Duo {
  std::array<Communicator, 2> comms;
  Duo() {
    std::array<ncclComm_t, 2> made{};
    EXPECT_EQ(ncclSuccess, ncclCommInitAll(made.data(), 2, nullptr)) << ncclGetLastError(nullptr);
    for (const int rank : {0, 1}) comms[rank].handle = made[rank];
  }
  ncclComm_t operator[](int rank) const { return comms[rank].handle; }
  /// Out of the object, so that it is not destroyed twice.
  ncclComm_t take(int rank) { return std::exchange(comms[rank].handle, nullptr); }
};

}  // namespace falcon::abi
