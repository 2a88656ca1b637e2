// Stands for the vendor's libnccl.so.2 before a program that is linked to it: moves nothing, writes down every call
// with its arguments. As in the vendor's, each ncclX is a weak name of a strong pncclX, and some call others by their
// names.
#include "preload/vendor.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "front/interposed.h"
#include "preload/profiled.h"

struct ncclComm {
  int rank, size;
  falcon::test::Profiled profiled{rank, size};
};

namespace {

std::mutex mutex;
std::string* lines = new std::string;
/// Children whose handles the vendor has not written yet.
std::vector<std::pair<ncclComm_t*, ncclComm_t>>* late = new std::vector<std::pair<ncclComm_t*, ncclComm_t>>;
/// What the thread's group has, as the vendor's keeps it; a call that was refused spoils all of it.
thread_local int depth = 0;
thread_local std::vector<ncclComm_t>* grouped = new std::vector<ncclComm_t>;
thread_local bool spoilt = false;
/// What the group's calls will tell a profiler.
thread_local std::vector<std::function<void()>>* toTell = new std::vector<std::function<void()>>;
std::set<ncclComm_t>* alive = new std::set<ncclComm_t>;

__attribute__((format(printf, 1, 2))) ncclResult_t note(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  const std::lock_guard lock(mutex);
  *lines += std::string(VENDOR_NAME) + ": " + line + '\n';
  return ncclSuccess;
}

/// A handle that a program sees at once.
ncclComm_t made(int rank, int size) {
  auto* const comm = new ncclComm{rank, size};
  const std::lock_guard lock(mutex);
  return *alive->insert(comm).first;
}

void end(ncclComm_t comm) {
  {
    const std::lock_guard lock(mutex);
    alive->erase(comm);
  }
  delete comm;
}

/// False: it is refused.
bool enqueue(ncclComm_t comm) {
  if (const std::lock_guard lock(mutex); comm && !alive->contains(comm)) {
    *lines += std::string(VENDOR_NAME) + ": a call's communicator is gone\n";
    return false;
  }
  if (comm && depth > 0) grouped->push_back(comm);
  if (!comm) spoilt = depth > 0;
  return comm != nullptr;
}

void tellProfiler(ncclComm_t comm, const char* function, std::size_t count, ncclDataType_t type, int peer) {
  std::function<void()> tell = [=] { comm->profiled.launch(function, count, type, peer); };
  if (depth == 0) return tell();
  toTell->push_back(std::move(tell));
}

/// Launched or cleared away, each communicator is used.
ncclResult_t endGroup(bool simulated = false) {
  const bool launches = !std::exchange(spoilt, false);
  const auto calls = std::exchange(*toTell, {});
  // In an order of its own, as the vendor has one.
  for (auto tell = calls.rbegin(); launches && !simulated && tell != calls.rend(); ++tell) (*tell)();
  for (const ncclComm_t comm : std::exchange(*grouped, {})) {
    const std::lock_guard lock(mutex);
    if (!alive->contains(comm)) *lines += std::string(VENDOR_NAME) + ": a group's communicator is gone\n";
  }
  return launches ? ncclSuccess : ncclInvalidArgument;
}

const void* asPointer(cudaStream_t stream) {
  return stream;
}

}  // namespace

#define VENDOR extern "C" __attribute__((visibility("default")))
/// The weak name of what stands before it.
#define TWIN(name) VENDOR __attribute__((weak, alias("p" #name))) decltype(p##name) name;
#define COLLECTIVE(name, parameters, ...)                \
  VENDOR ncclResult_t pnccl##name parameters {           \
    if (!enqueue(comm)) return ncclInvalidArgument;      \
    tellProfiler(comm, #name, count, type, PEER_##name); \
    return note(#name " " __VA_ARGS__);                  \
  }                                                      \
  TWIN(nccl##name)

#define PEER_AllReduce -1
#define PEER_AllReduceConfig -1
#define PEER_AllGather -1
#define PEER_ReduceScatter -1
#define PEER_AlltoAll -1
#define PEER_Broadcast root
#define PEER_Reduce root
#define PEER_Gather root
#define PEER_Scatter root
#define PEER_Send peer
#define PEER_Recv peer

#ifdef VENDOR_IS_EARLIER_FALCON
// The only one of nccl_falcon.h that every version has.
VENDOR ncclResult_t ncclFalconGetVersion(int* version) {
  if (!version) return ncclInvalidArgument;
  *version = 1;
  return ncclSuccess;
}
#endif

VENDOR void vendorTakeLog(char* text, std::size_t size) {
  const std::lock_guard lock(mutex);
  snprintf(text, size, "%s", lines->c_str());
  lines->clear();
}
VENDOR void vendorWriteHandles() {
  for (const auto& [output, handle] : *late) *output = handle;
  late->clear();
}

VENDOR void vendorTellCalls(int* told, int* untold) {
  *told = falcon::test::callsTold();
  *untold = falcon::test::callsUntold();
}

VENDOR ncclResult_t pncclGetVersion(int* version) {
  *version = VENDOR_VERSION;
  return ncclSuccess;
}
TWIN(ncclGetVersion)
VENDOR const char* pncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "fine" : "not fine";
}
TWIN(ncclGetErrorString)
/// As the vendor's: 40 bytes, the rest zero.
VENDOR ncclResult_t pncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof *id);
  std::memset(id->internal, 'v', VENDOR_ID_BYTES);
  return note("GetUniqueId");
}
TWIN(ncclGetUniqueId)

namespace {

ncclResult_t noteInit(const char* name, ncclComm_t* comm, int size, const ncclUniqueId& id, int rank,
                      const void* config) {
  *comm = made(rank, size);
  return note("%s size=%d rank=%d id=%.4s config=%p", name, size, rank, id.internal, config);
}

}  // namespace

VENDOR ncclResult_t pncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  return noteInit("CommInitRank", comm, size, id, rank, nullptr);
}
TWIN(ncclCommInitRank)
VENDOR ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                            ncclConfig_t* config) {
  return noteInit("CommInitRankConfig", comm, size, id, rank, config);
}
TWIN(ncclCommInitRankConfig)
VENDOR ncclResult_t pncclCommInitRankScalable(ncclComm_t* comm, int size, int rank, int count, ncclUniqueId* ids,
                                              ncclConfig_t* config) {
  note("%d ids", count);
  return noteInit("CommInitRankScalable", comm, size, ids[0], rank, config);
}
TWIN(ncclCommInitRankScalable)
VENDOR ncclResult_t pncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  for (int rank = 0; rank < count; ++rank) comms[rank] = made(rank, count);
  return note("CommInitAll %d %p", count, static_cast<const void*>(devices));
}
TWIN(ncclCommInitAll)
VENDOR ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t* config) {
  note("CommSplit color=%d key=%d config=%p", color, key, static_cast<void*>(config));
  *child = nullptr;
  if (color < 0) return ncclSuccess;
  // Ranks of a colour are those of equal remainder, as the program has it.
  const int colors = 2;
  const ncclComm_t handle = made(comm->rank / colors, (comm->size + colors - 1 - color) / colors);
  if (depth == 0 && (!config || config->blocking != 0)) {
    *child = handle;
    return ncclSuccess;
  }
  late->emplace_back(child, handle);
  return depth > 0 ? ncclSuccess : ncclInProgress;
}
TWIN(ncclCommSplit)
VENDOR ncclResult_t pncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* child, ncclConfig_t* config,
                                    int flags) {
  *child = made(comm->rank, comm->size - count);  // those who go come last, as the program has it
  return note("CommShrink %d %d %p %d", excluded[0], count, static_cast<void*>(config), flags);
}
TWIN(ncclCommShrink)
#if VENDOR_VERSION >= 22902
VENDOR ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* id) {
  std::memset(id, 0, sizeof *id);
  std::memset(id->internal, 'g', VENDOR_ID_BYTES);
  return note("CommGetUniqueId of rank %d", comm->rank);
}
TWIN(ncclCommGetUniqueId)
/// As the vendor's, it writes the handle at once.
VENDOR ncclResult_t pncclCommGrow(ncclComm_t comm, int size, const ncclUniqueId* id, int rank, ncclComm_t* child,
                                  ncclConfig_t* config) {
  *child = made(comm ? comm->rank : rank, size);
  return note("CommGrow size=%d rank=%d id=%.4s config=%p", size, rank, id ? id->internal : "none",
              static_cast<void*>(config));
}
TWIN(ncclCommGrow)
#endif
VENDOR ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  end(comm);
  return note("CommDestroy");
}
TWIN(ncclCommDestroy)
VENDOR ncclResult_t pncclCommAbort(ncclComm_t comm) {
  end(comm);
  return note("CommAbort");
}
TWIN(ncclCommAbort)
VENDOR ncclResult_t pncclCommCount(const ncclComm_t comm, int* count) {
  *count = comm->size;
  return ncclSuccess;
}
TWIN(ncclCommCount)
VENDOR ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
TWIN(ncclCommUserRank)
VENDOR ncclResult_t pncclCommCuDevice(const ncclComm_t, int* device) {
  *device = 3;
  return ncclSuccess;
}
TWIN(ncclCommCuDevice)
// What our libnccl.so.2 wants of a vendor's library beside.
VENDOR const char* pncclGetLastError(ncclComm_t) {
  return "";
}
TWIN(ncclGetLastError)
VENDOR ncclResult_t pncclCommFinalize(ncclComm_t) {
  return ncclSuccess;
}
TWIN(ncclCommFinalize)
VENDOR ncclResult_t pncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) {
  *state = ncclSuccess;
  return ncclSuccess;
}
TWIN(ncclCommGetAsyncError)
VENDOR ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t*, void*, ncclDataType_t, ncclScalarResidence_t, ncclComm_t) {
  return ncclInvalidUsage;
}
TWIN(ncclRedOpCreatePreMulSum)
VENDOR ncclResult_t pncclRedOpDestroy(ncclRedOp_t, ncclComm_t) {
  return ncclInvalidUsage;
}
TWIN(ncclRedOpDestroy)
VENDOR ncclResult_t pncclGroupStart() {
  ++depth;
  return note("GroupStart");
}
TWIN(ncclGroupStart)
VENDOR ncclResult_t pncclGroupEnd() {
  note("GroupEnd");
  if (--depth > 0) return ncclSuccess;
  vendorWriteHandles();
  return endGroup();
}
TWIN(ncclGroupEnd)
VENDOR ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t* info) {
  if (--depth == 0) endGroup(true);
  return note("GroupSimulateEnd %p", static_cast<void*>(info));
}
TWIN(ncclGroupSimulateEnd)

#define PLAIN (const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
#define REDUCED                                                                                         \
  (const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, \
   cudaStream_t stream)
#define ROOTED \
  (const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
#define NOTE_PLAIN "%p %p %zu %d %p", send, receive, count, type, asPointer(stream)
#define NOTE_REDUCED "%p %p %zu %d %d %p", send, receive, count, type, op, asPointer(stream)
#define NOTE_ROOTED "%p %p %zu %d root=%d %p", send, receive, count, type, root, asPointer(stream)

COLLECTIVE(AllReduce, REDUCED, NOTE_REDUCED)
COLLECTIVE(Broadcast, ROOTED, NOTE_ROOTED)
/// Calls another of its functions by name, as the vendor does: that may be somebody else's by now.
VENDOR ncclResult_t pncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                               cudaStream_t stream) {
  note("Bcast");
  const ncclResult_t result = ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
  note("Bcast ends");
  return result;
}
TWIN(ncclBcast)
COLLECTIVE(Reduce,
           (const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
            ncclComm_t comm, cudaStream_t stream),
           "%p %p %zu %d %d root=%d %p", send, receive, count, type, op, root, asPointer(stream))
COLLECTIVE(AllGather, PLAIN, NOTE_PLAIN)
COLLECTIVE(ReduceScatter, REDUCED, NOTE_REDUCED)
COLLECTIVE(AlltoAll, PLAIN, NOTE_PLAIN)
COLLECTIVE(Gather, ROOTED, NOTE_ROOTED)
COLLECTIVE(Scatter, ROOTED, NOTE_ROOTED)
COLLECTIVE(Send, (const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream),
           "%p %zu %d peer=%d %p", send, count, type, peer, asPointer(stream))
COLLECTIVE(Recv, (void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream),
           "%p %zu %d peer=%d %p", receive, count, type, peer, asPointer(stream))
#if VENDOR_VERSION >= 23102
#define CONFIGURED(shape, ...) COLLECTIVE(shape, __VA_ARGS__)
COLLECTIVE(AllReduceConfig,
           (const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
            cudaStream_t stream, const ncclCollConfig_t* config),
           "%p %p %zu %d %d %p %p", send, receive, count, type, op, asPointer(stream), static_cast<const void*>(config))
#endif
