// The preload library's exports: NCCL's functions that Falcon watches, and those that make or end communicators. All
// others of NCCL's are not here, so that they reach the vendor's library untouched, whatever its release.
#include "front/layouts.h"
#include "front/message.h"
#include "front/route.h"

namespace falcon::front {
namespace {

/// For a function that the vendor's library is too old for.
ncclResult_t lacking(const char* text) {
  say(text);
  return ncclInvalidUsage;
}

}  // namespace
}  // namespace falcon::front

using falcon::front::forgetLayout;
using falcon::front::lacking;
using falcon::front::Route;
using falcon::front::routeFrom;
using falcon::front::WatchedCall;

// The return address has to be taken in the exported function itself.
#define FALCON_ROUTE(name)                                     \
  const Route& route = routeFrom(__builtin_return_address(0)); \
  const auto forward = route.vendor->name;                     \
  if (!forward) [[unlikely]]                                   \
  return lacking("nccl" #name " is not in the library of NCCL that its caller is linked to")

#define FALCON_WATCHED(name, parameters, arguments, ...) \
  ncclResult_t nccl##name parameters {                   \
    FALCON_ROUTE(name);                                  \
    if (!route.core) [[likely]]                          \
      return forward arguments;                          \
    const WatchedCall call{__VA_ARGS__};                 \
    void* const begun = route.core->callBegins(&call);   \
    const ncclResult_t result = forward arguments;       \
    if (begun) route.core->callEnds(begun, result);      \
    return result;                                       \
  }

// clang-format off
#define FALCON_COLLECTIVE(name, operation, parameters, arguments, reduction, peer)                                  \
  FALCON_WITH(name, operation, parameters, arguments, reduction, peer, nullptr)
#define FALCON_WITH(name, operation, parameters, arguments, reduction, peer, config)                                \
  FALCON_WATCHED(name, parameters, arguments, comm, falcon::Operation::operation, type, reduction, count, peer, stream, config)
/// The plain function and its twin with a configuration.
#define FALCON_BOTH(name, operation, parameters, arguments, reduction, peer)                                        \
  FALCON_COLLECTIVE(name, operation, (FALCON_LIST parameters), (FALCON_LIST arguments), reduction, peer)            \
  FALCON_WITH(name##Config, operation, (FALCON_LIST parameters, const ncclCollConfig_t* config),                    \
              (FALCON_LIST arguments, config), reduction, peer, config)
#define FALCON_LIST(...) __VA_ARGS__
// clang-format on

extern "C" {

FALCON_BOTH(AllReduce, allReduce,
            (const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
             cudaStream_t stream),
            (send, receive, count, type, op, comm, stream), op, -1)
FALCON_BOTH(Broadcast, broadcast,
            (const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
             cudaStream_t stream),
            (send, receive, count, type, root, comm, stream), 0, root)
FALCON_COLLECTIVE(Bcast, broadcast,
                  (void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream),
                  (buffer, count, type, root, comm, stream), 0, root)
FALCON_BOTH(Reduce, reduce,
            (const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
             ncclComm_t comm, cudaStream_t stream),
            (send, receive, count, type, op, root, comm, stream), op, root)
FALCON_BOTH(AllGather, allGather,
            (const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream),
            (send, receive, count, type, comm, stream), 0, -1)
FALCON_BOTH(ReduceScatter, reduceScatter,
            (const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
             cudaStream_t stream),
            (send, receive, count, type, op, comm, stream), op, -1)
FALCON_BOTH(AlltoAll, allToAll,
            (const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream),
            (send, receive, count, type, comm, stream), 0, -1)
FALCON_BOTH(Gather, gather,
            (const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
             cudaStream_t stream),
            (send, receive, count, type, root, comm, stream), 0, root)
FALCON_BOTH(Scatter, scatter,
            (const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
             cudaStream_t stream),
            (send, receive, count, type, root, comm, stream), 0, root)
FALCON_COLLECTIVE(Send, send,
                  (const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream),
                  (send, count, type, peer, comm, stream), 0, peer)
FALCON_COLLECTIVE(Recv, receive,
                  (void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream),
                  (receive, count, type, peer, comm, stream), 0, peer)

ncclResult_t ncclGroupStart() {
  FALCON_ROUTE(GroupStart);
  const ncclResult_t result = forward();
  if (route.core && result == ncclSuccess) route.core->groupStarted();
  return result;
}

ncclResult_t ncclGroupEnd() {
  FALCON_ROUTE(GroupEnd);
  if (!route.core) return forward();
  route.core->groupEnds();
  const ncclResult_t result = forward();
  route.core->groupEnded(result);
  return result;
}

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* info) {
  FALCON_ROUTE(GroupSimulateEnd);
  const ncclResult_t result = forward(info);
  if (route.core) route.core->groupDropped();
  return result;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  FALCON_ROUTE(GetUniqueId);
  const ncclResult_t result = forward(id);
  if (route.core && result == ncclSuccess) route.core->uniqueIdMade(id);
  return result;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  FALCON_ROUTE(CommInitRank);
  if (!route.core) return forward(comm, size, id, rank);
  void* const making = route.core->initBegins(&id, size, rank, &route.vendor->questions);
  const ncclResult_t result = forward(comm, size, id, rank);
  if (making) route.core->initEnds(making, result, comm ? *comm : nullptr);
  return result;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  FALCON_ROUTE(CommInitRankConfig);
  if (!route.core) return forward(comm, size, id, rank, config);
  void* const making = route.core->initBegins(&id, size, rank, &route.vendor->questions);
  const ncclResult_t result = forward(comm, size, id, rank, config);
  if (making) route.core->initEnds(making, result, comm ? *comm : nullptr);
  return result;
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int size, int rank, int idCount, ncclUniqueId* ids,
                                      ncclConfig_t* config) {
  FALCON_ROUTE(CommInitRankScalable);
  if (!route.core) return forward(comm, size, rank, idCount, ids, config);
  // Every rank has the same list: the first id's rendezvous will do.
  void* const making =
      ids && idCount > 0 ? route.core->initBegins(&ids[0], size, rank, &route.vendor->questions) : nullptr;
  const ncclResult_t result = forward(comm, size, rank, idCount, ids, config);
  if (making) route.core->initEnds(making, result, comm ? *comm : nullptr);
  return result;
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
  FALCON_ROUTE(CommInitAll);
  const ncclResult_t result = forward(comms, count, devices);
  if (route.core && result == ncclSuccess) route.core->initAllEnded(comms, count, &route.vendor->questions);
  return result;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t* config) {
  FALCON_ROUTE(CommSplit);
  const ncclResult_t result = forward(comm, color, key, child, config);
  if (route.core) route.core->splitEnded(comm, color, key, child, result, &route.vendor->questions);
  return result;
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* child, ncclConfig_t* config,
                            int flags) {
  FALCON_ROUTE(CommShrink);
  const ncclResult_t result = forward(comm, excluded, count, child, config, flags);
  if (route.core) route.core->shrinkEnded(comm, excluded, count, child, result, &route.vendor->questions);
  return result;
}

ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* id) {
  FALCON_ROUTE(CommGetUniqueId);
  const ncclResult_t result = forward(comm, id);
  if (route.core && result == ncclSuccess) route.core->growthIdMade(comm, id);
  return result;
}

ncclResult_t ncclCommGrow(ncclComm_t comm, int size, const ncclUniqueId* id, int rank, ncclComm_t* child,
                          ncclConfig_t* config) {
  FALCON_ROUTE(CommGrow);
  if (!route.core) return forward(comm, size, id, rank, child, config);
  const auto* const questions = &route.vendor->questions;
  void* const joining = !comm && id ? route.core->initBegins(id, size, rank, questions) : nullptr;
  const ncclResult_t result = forward(comm, size, id, rank, child, config);
  const ncclComm_t made = child ? *child : nullptr;
  if (comm) route.core->growEnded(comm, size, id, made, result, questions);
  if (joining) route.core->initEnds(joining, result, made);
  return result;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  FALCON_ROUTE(CommDestroy);
  forgetLayout(comm);
  if (route.core) route.core->communicatorEnds(comm);
  return forward(comm);
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  FALCON_ROUTE(CommAbort);
  forgetLayout(comm);
  if (route.core) route.core->communicatorEnds(comm);
  return forward(comm);
}

}  // extern "C"
