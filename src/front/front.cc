// The preload library's exports: NCCL's functions that Falcon watches, and those that make or end communicators. All
// others of NCCL's are not here, so that they reach the vendor's library untouched, whatever its release.
#include "front/homes.h"
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

/// The vendor launches nothing of a group in which a call was refused, and its end clears it away. Nothing else does
/// that: without its end the thread would stay in the group.
void spoilGroup(const VendorTable& vendor) {
  if (vendor.AllReduce) vendor.AllReduce(nullptr, nullptr, 0, ncclFloat, ncclSum, nullptr, nullptr);
}

/// What one call has made.
void keepHomes(const ncclComm_t* made, int count, ncclResult_t result, const Route& route) {
  if (!made || (result != ncclSuccess && result != ncclInProgress)) return;
  for (int i = 0; i < count; ++i) keepHome(made[i], route);
}

/// What stood where a child's handle goes: in a group it is written later, and what stands there is another's, perhaps.
ncclComm_t handleAt(const ncclComm_t* output) {
  return output ? *output : nullptr;
}
void keepHomeOfChild(ncclComm_t before, const ncclComm_t* child, ncclResult_t result, const Route& route) {
  if (handleAt(child) != before) keepHomes(child, 1, result, route);
}

}  // namespace
}  // namespace falcon::front

using falcon::front::CallBegun;
using falcon::front::forgetHome;
using falcon::front::forgetLayout;
using falcon::front::handleAt;
using falcon::front::homeOf;
using falcon::front::keepHomeOfChild;
using falcon::front::keepHomes;
using falcon::front::lacking;
using falcon::front::Route;
using falcon::front::routeFrom;
using falcon::front::spoilGroup;
using falcon::front::WatchedCall;

// The return address has to be taken in the exported function itself.
#define FALCON_ROUTE(name)                                     \
  const Route& route = routeFrom(__builtin_return_address(0)); \
  FALCON_FORWARD(name)
#define FALCON_ROUTE_OF(communicator, name)                                          \
  const Route& route = homeOf(communicator, routeFrom(__builtin_return_address(0))); \
  FALCON_FORWARD(name)
#define FALCON_FORWARD(name)               \
  const auto forward = route.vendor->name; \
  if (!forward) [[unlikely]]               \
  return lacking("nccl" #name " is not in the library of NCCL that its caller is linked to")

#define FALCON_WATCHED(name, parameters, arguments, ...)                             \
  ncclResult_t nccl##name parameters {                                               \
    FALCON_ROUTE_OF(comm, name);                                                     \
    if (!route.core) [[likely]]                                                      \
      return forward arguments;                                                      \
    const WatchedCall call{__VA_ARGS__};                                             \
    const CallBegun begun = route.core->callBegins(&call, &route.vendor->questions); \
    if (begun.refused) [[unlikely]]                                                  \
      return ncclInvalidUsage;                                                       \
    const ncclResult_t result = forward arguments;                                   \
    if (begun.call) route.core->callEnds(begun.call, result);                        \
    return result;                                                                   \
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
  const bool dropped = route.core->groupEnds();
  if (dropped) [[unlikely]]
    spoilGroup(*route.vendor);
  const ncclResult_t given = forward();
  const ncclResult_t result = dropped ? ncclInvalidUsage : given;
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
  void* const making = route.core ? route.core->initBegins(&id, size, rank, &route.vendor->questions) : nullptr;
  const ncclResult_t result = forward(comm, size, id, rank);
  keepHomes(comm, 1, result, route);
  if (making) route.core->initEnds(making, result, comm ? *comm : nullptr);
  return result;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  FALCON_ROUTE(CommInitRankConfig);
  void* const making = route.core ? route.core->initBegins(&id, size, rank, &route.vendor->questions) : nullptr;
  const ncclResult_t result = forward(comm, size, id, rank, config);
  keepHomes(comm, 1, result, route);
  if (making) route.core->initEnds(making, result, comm ? *comm : nullptr);
  return result;
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int size, int rank, int idCount, ncclUniqueId* ids,
                                      ncclConfig_t* config) {
  FALCON_ROUTE(CommInitRankScalable);
  // Every rank has the same list: the first id's rendezvous will do.
  void* const making = route.core && ids && idCount > 0
                           ? route.core->initBegins(&ids[0], size, rank, &route.vendor->questions)
                           : nullptr;
  const ncclResult_t result = forward(comm, size, rank, idCount, ids, config);
  keepHomes(comm, 1, result, route);
  if (making) route.core->initEnds(making, result, comm ? *comm : nullptr);
  return result;
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
  FALCON_ROUTE(CommInitAll);
  const ncclResult_t result = forward(comms, count, devices);
  keepHomes(comms, count, result, route);
  if (route.core && result == ncclSuccess) route.core->initAllEnded(comms, count, &route.vendor->questions);
  return result;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t* config) {
  FALCON_ROUTE_OF(comm, CommSplit);
  const ncclComm_t before = handleAt(child);
  const ncclResult_t result = forward(comm, color, key, child, config);
  keepHomeOfChild(before, child, result, route);
  if (route.core) route.core->splitEnded(comm, color, key, child, result, &route.vendor->questions);
  return result;
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* child, ncclConfig_t* config,
                            int flags) {
  FALCON_ROUTE_OF(comm, CommShrink);
  const ncclComm_t before = handleAt(child);
  const ncclResult_t result = forward(comm, excluded, count, child, config, flags);
  keepHomeOfChild(before, child, result, route);
  if (route.core) route.core->shrinkEnded(comm, excluded, count, child, result, &route.vendor->questions);
  return result;
}

ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* id) {
  FALCON_ROUTE_OF(comm, CommGetUniqueId);
  const ncclResult_t result = forward(comm, id);
  if (route.core && result == ncclSuccess) route.core->growthIdMade(comm, id);
  return result;
}

ncclResult_t ncclCommGrow(ncclComm_t comm, int size, const ncclUniqueId* id, int rank, ncclComm_t* child,
                          ncclConfig_t* config) {
  FALCON_ROUTE_OF(comm, CommGrow);
  if (!route.core) {
    const ncclResult_t result = forward(comm, size, id, rank, child, config);
    keepHomes(child, 1, result, route);
    return result;
  }
  void* const joining = !comm && id ? route.core->initBegins(id, size, rank, &route.vendor->questions) : nullptr;
  const ncclResult_t result = forward(comm, size, id, rank, child, config);
  keepHomes(child, 1, result, route);
  const ncclComm_t made = child ? *child : nullptr;
  if (comm) route.core->growEnded(comm, size, id, made, result);
  if (joining) route.core->initEnds(joining, result, made);
  return result;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  FALCON_ROUTE_OF(comm, CommDestroy);
  forgetHome(comm);
  forgetLayout(comm);
  void* const ending = route.core ? route.core->communicatorEnds(comm) : nullptr;
  const ncclResult_t result = forward(comm);
  if (ending) route.core->communicatorEnded(ending, false);
  return result;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  FALCON_ROUTE_OF(comm, CommAbort);
  forgetHome(comm);
  forgetLayout(comm);
  void* const ending = route.core ? route.core->communicatorEnds(comm) : nullptr;
  const ncclResult_t result = forward(comm);
  if (ending) route.core->communicatorEnded(ending, true);
  return result;
}

}  // extern "C"
