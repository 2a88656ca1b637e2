// What a program wants to be told once a host stream has come so far.
#pragma once

#include "api/exports.h"
#include "api/lane.h"

namespace falcon::api {

struct StreamCallback {
  ncclFalconStreamCallback_t function = nullptr;
  void* context = nullptr;
};

/// Calls it at once.
void callBack(const StreamCallback& callback, ncclResult_t result);

/// Queues a call of it: on the lane's thread, with how the works went that ended since the callback before, whose text
/// is that thread's last error. False: the lane is closed, and nothing was queued.
bool queueCallback(Lane& lane, StreamCallback callback);

}  // namespace falcon::api
