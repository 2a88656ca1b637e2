// Makes communicators: rendezvous, agreement on the engine, the engines, and their place in the job.
#pragma once

#include <span>

#include "api/communicator.h"
#include "bootstrap/unique_id.h"

namespace falcon::api {

/// One rank's part in the making of a communicator by an id of ours.
struct JoinRequest {
  bootstrap::UniqueId id;
  int size = 0;
  Rank rank = -1;
  int device = -1;                ///< -1: the calling thread's
  void* deviceContext = nullptr;  ///< of the thread that made the call; null: none
};

/// Blocking; every rank calls. Ends with start() on `communicator`.
Status establish(ncclComm& communicator, const JoinRequest& request);

/// Blocking; every rank of `parent` calls. Ends with start() on `child`, but for who takes no part (color < 0).
Status establishSplit(ncclComm& parent, ncclComm& child, int color, int key);

/// The calling thread's device context, to be carried to the thread that sets a communicator up; null without a driver.
void* currentDeviceContext();
void makeContextCurrent(void* context);
/// The calling thread's device from now on. `device`: -1 is that of `context`, which may be null: none is known.
void useDevice(int device, void* context);

/// Blocking; every rank of `parent` but the excluded ones calls. Ends with start() on `child`.
Status establishShrunk(ncclComm& parent, ncclComm& child, std::span<const Rank> excluded, bool despiteFailure);

/// Blocking; every rank of `parent`, which is of host memory, calls, and who joins calls establish() with the id. Ends
/// with start() on `child`. `id`: its bytes on one rank at least, "" on the others.
Status establishGrown(ncclComm& parent, ncclComm& child, int size, const std::string& id);

/// For ncclGetUniqueId: the vendor's where its library will most likely move the data, so that nobody has to agree on
/// that. Else ours, by which the members agree on an engine when they have met: an id that a process without a GPU
/// makes for others says nothing.
Result<ncclUniqueId> newUniqueId();
/// For ncclFalconGetHostUniqueId: what is made by it moves host memory, whatever devices there are.
Result<ncclUniqueId> newHostUniqueId();
/// The same as newUniqueId() for ranks of this process alone, which join right away: NCCL_COMM_ID means nothing to
/// ours.
Result<ncclUniqueId> newUniqueIdOfProcess();

/// One rank's call to join a new communicator: checks it and sets it up, in the thread's group. `ids`: one at least; of
/// ours the first one's rendezvous serves all ranks. `device` as in JoinRequest.
Status startRank(const char* function, ncclComm_t* output, int size, std::span<const ncclUniqueId> ids, int rank,
                 const ncclConfig_t* config, int device = -1);

}  // namespace falcon::api
