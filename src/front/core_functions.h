// What the front of the preload library asks of its core: a table of functions, the same in both, built together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/operation.h"
#include "front/interposed.h"

namespace falcon::front {

/// A call as the application made it, but for its buffers.
struct WatchedCall {
  ncclComm_t communicator;
  Operation operation;
  ncclDataType_t type;
  int reduction;  ///< ncclRedOp_t, which may be a user's
  std::size_t count;
  int peer;  ///< root, or the peer of a message; -1: none
  cudaStream_t stream;
  const ncclCollConfig_t* config;  ///< null: the call has none of its own
};

/// What the core may ask the vendor of a communicator, and only in the application's own call.
struct VendorQuestions {
  decltype(&::ncclCommCount) count;
  decltype(&::ncclCommUserRank) userRank;
  decltype(&::ncclCommCuDevice) device;
};

/// What comes of a call before it is forwarded.
struct CallBegun {
  void* call;    ///< for callEnds(); null: nothing is to follow
  bool refused;  ///< its communicator was ended while the caller was held: the vendor's may be gone
};

/// Nothing here fails or throws: what of Falcon does not work is not watched, and said once.
struct CoreFunctions {
  /// The vendor has made this id: Falcon's rendezvous is written into the bytes that the vendor leaves zero.
  void (*uniqueIdMade)(ncclUniqueId* id);

  /// A communicator is about to be made of this id. Gives a making, null where it will not be watched; to be ended.
  void* (*initBegins)(const ncclUniqueId* id, int size, int rank, const VendorQuestions* questions);
  /// `handle`: as the vendor left it; null where it made none.
  void (*initEnds)(void* making, ncclResult_t result, ncclComm_t handle);
  /// All ranks of this process's InitAll, made already.
  void (*initAllEnded)(const ncclComm_t* handles, int count, const VendorQuestions* questions);
  /// After the vendor's: the child's handle is in `child` now, or will be by its first use.
  void (*splitEnded)(ncclComm_t parent, int color, int key, ncclComm_t* child, ncclResult_t result,
                     const VendorQuestions* questions);
  void (*shrinkEnded)(ncclComm_t parent, const int* excluded, int count, ncclComm_t* child, ncclResult_t result,
                      const VendorQuestions* questions);
  /// The vendor has made this id for ranks that will join a communicator that grows.
  void (*growthIdMade)(ncclComm_t parent, ncclUniqueId* id);
  /// After the vendor's, on a rank of the parent; one that joins calls initBegins() and initEnds(). `id`: may be null.
  void (*growEnded)(ncclComm_t parent, int size, const ncclUniqueId* id, ncclComm_t child, ncclResult_t result);
  /// Before Destroy or Abort is forwarded, since the address may come again at once; waits while a thread that was held
  /// drops a group. What it gives is for communicatorEnded(); null: nothing is to follow.
  void* (*communicatorEnds)(ncclComm_t communicator);
  /// After the vendor's, which never waits for Falcon. May take a moment, but not after an abort.
  void (*communicatorEnded)(void* ending, bool aborted);

  /// Around a call. May hold the caller while the job is held.
  CallBegun (*callBegins)(const WatchedCall* call, const VendorQuestions* questions);
  void (*callEnds)(void* call, ncclResult_t result);
  void (*groupStarted)();
  /// Before the vendor's GroupEnd, and after it. May hold the caller. True: a communicator of the group is about to be
  /// ended, which waits until the vendor has dropped the group.
  bool (*groupEnds)();
  void (*groupEnded)(ncclResult_t result);
  /// A group that was only simulated.
  void (*groupDropped)();

  // nccl_falcon.h, whose arguments are checked.

  void (*layoutRegistered)(ncclComm_t communicator, const ncclFalconLayout_t* layout);
  /// False: the communicator is not watched, or not yet, so that nobody plans for it. May hold the caller.
  bool (*iterationBegins)(ncclComm_t communicator, uint64_t iteration, ncclFalconPlan_t* plan, ncclResult_t* result);
  void (*rangeBegins)(const char* name);
  ncclResult_t (*rangeEnds)();
  ncclResult_t (*workTold)(double work);
  ncclResult_t (*suspend)(ncclComm_t communicator, unsigned limitMilliseconds);
  ncclResult_t (*resume)(ncclComm_t communicator);
  ncclResult_t (*trapCallbackAdded)(ncclFalconTrapCallback_t callback, void* context);
  ncclResult_t (*trapCallbackRemoved)(ncclFalconTrapCallback_t callback, void* context);
  ncclResult_t (*stateRegistered)(ncclComm_t communicator, const char* name, void* pointer, size_t bytes,
                                  unsigned int flags);
  ncclResult_t (*stateUnregistered)(ncclComm_t communicator, const char* name);
  ncclResult_t (*checkpoint)(ncclComm_t communicator, uint64_t iteration, const char* folder);
  ncclResult_t (*checkpointSynchronize)(ncclComm_t communicator);
  ncclResult_t (*restore)(ncclComm_t communicator, const char* folder, uint64_t* iteration);
  ncclResult_t (*wanted)(ncclComm_t communicator, uint64_t iteration, unsigned int* wanted);
  ncclResult_t (*restart)(ncclComm_t communicator, int* exitCode);
  /// What is to be told of an iteration's end: health and what is wanted, which are left where the communicator is not
  /// watched. `asks`: as wanted() does, which may hold the caller.
  void (*iterationEnds)(ncclComm_t communicator, uint64_t iteration, bool asks, int* health, unsigned int* wanted);
};

/// The core's only export. Null where the front is of another build (`build`: FALCON_BUILD of both).
using GetCoreFunctions = const CoreFunctions* (*)(const char* build);
inline constexpr const char* getCoreFunctionsName = "ncclFalconCoreFunctions";

}  // namespace falcon::front
