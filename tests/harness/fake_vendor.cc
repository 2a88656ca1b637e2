// Stands for the vendor's libnccl.so.2 in tests: moves nothing, writes down every call with its arguments.
#include "harness/fake_vendor.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#pragma GCC visibility push(default)
#include "nccl.h"
#pragma GCC visibility pop

struct ncclComm {
  int rank, size;
};

namespace {

std::mutex mutex;
std::string* lines = new std::string;
std::atomic<int> failure{0}, asyncError{0};

__attribute__((format(printf, 1, 2))) ncclResult_t note(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  const std::lock_guard lock(mutex);
  *lines += line;
  *lines += '\n';
  return static_cast<ncclResult_t>(failure.load());
}

std::string textOf(const ncclConfig_t* config) {
  if (!config) return "";
  return " blocking=" + std::to_string(config->blocking) + " maxCTAs=" + std::to_string(config->maxCTAs) +
         " name=" + (config->commName ? config->commName : "");
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE void fakeVendorTakeLog(char* text, std::size_t size) {
  const std::lock_guard lock(mutex);
  snprintf(text, size, "%s", lines->c_str());
  lines->clear();
}
FAKE void fakeVendorFail(int result) {
  failure = result;
}
FAKE void fakeVendorSetAsyncError(int result) {
  asyncError = result;
}

FAKE ncclResult_t pncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}
FAKE const char* pncclGetErrorString(ncclResult_t) {
  return "fake error";
}
FAKE const char* pncclGetLastError(ncclComm_t) {
  return "fake detail";
}
// The vendor's fill 40 bytes; the rest is zero.
FAKE ncclResult_t pncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof *id);
  std::memset(id->internal, 'v', 40);
  return note("GetUniqueId");
}
FAKE ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  *comm = new ncclComm{rank, size};
  return note("CommInitRankConfig size=%d rank=%d id=%c%c blocking=%d name=%s", size, rank, id.internal[0],
              id.internal[39], config->blocking, config->commName ? config->commName : "");
}
FAKE ncclResult_t pncclCommInitRankScalable(ncclComm_t* comm, int size, int rank, int count, ncclUniqueId* ids,
                                            ncclConfig_t* config) {
  *comm = new ncclComm{rank, size};
  return note("CommInitRankScalable size=%d rank=%d ids=%d last=%c%s", size, rank, count, ids[count - 1].internal[39],
              textOf(config).c_str());
}
FAKE ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t* config) {
  *child = color < 0 ? nullptr : new ncclComm{comm->rank, comm->size};
  return note("CommSplit color=%d key=%d%s", color, key, textOf(config).c_str());
}
FAKE ncclResult_t pncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* child, ncclConfig_t* config,
                                  int flags) {
  *child = new ncclComm{comm->rank, comm->size - count};
  return note("CommShrink first=%d count=%d flags=%d%s", excluded[0], count, flags, textOf(config).c_str());
}
// Of 2.29, which a fake may be ahead of. The first 40 bytes as the vendor's; the rest is zero.
FAKE ncclResult_t pncclCommGetUniqueId(ncclComm_t, ncclUniqueId* id) {
  std::memset(id, 0, sizeof *id);
  std::memset(id->internal, 'g', 40);
  return note("CommGetUniqueId");
}
FAKE ncclResult_t pncclCommGrow(ncclComm_t comm, int size, const ncclUniqueId* id, int rank, ncclComm_t* grown,
                                ncclConfig_t* config) {
  *grown = new ncclComm{comm ? comm->rank : rank, size};
  return note("CommGrow %s size=%d rank=%d id=%c%s", comm ? "member" : "new", size, rank, id ? id->internal[39] : '-',
              textOf(config).c_str());
}
FAKE ncclResult_t pncclCommRevoke(ncclComm_t, int flags) {
  return note("CommRevoke %d", flags);
}
FAKE ncclResult_t pncclCommFinalize(ncclComm_t) {
  return note("CommFinalize");
}
FAKE ncclResult_t pncclWinGetUserPtr(ncclComm_t, ncclWindow_t window, void** address) {
  *address = reinterpret_cast<void*>(0x9900);
  return note("WinGetUserPtr %p", static_cast<void*>(window));
}
FAKE ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return note("CommDestroy");
}
FAKE ncclResult_t pncclCommAbort(ncclComm_t comm) {
  delete comm;
  return note("CommAbort");
}
FAKE ncclResult_t pncclCommGetAsyncError(ncclComm_t, ncclResult_t* result) {
  *result = static_cast<ncclResult_t>(asyncError.load());
  return ncclSuccess;
}
FAKE ncclResult_t pncclCommCount(ncclComm_t comm, int* count) {
  *count = comm->size;
  return ncclSuccess;
}
FAKE ncclResult_t pncclCommUserRank(ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
FAKE ncclResult_t pncclCommCuDevice(ncclComm_t, int* device) {
  *device = 3;
  return ncclSuccess;
}
FAKE ncclResult_t pncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                 ncclComm_t, cudaStream_t stream) {
  return note("AllReduce %p %p %zu %d %d %p", send, receive, count, type, op, static_cast<void*>(stream));
}
FAKE ncclResult_t pncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                                 ncclComm_t, cudaStream_t stream) {
  return note("Broadcast %p %p %zu %d root=%d %p", send, receive, count, type, root, static_cast<void*>(stream));
}
FAKE ncclResult_t pncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                              int root, ncclComm_t, cudaStream_t stream) {
  return note("Reduce %p %p %zu %d %d root=%d %p", send, receive, count, type, op, root, static_cast<void*>(stream));
}
FAKE ncclResult_t pncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t,
                                 cudaStream_t stream) {
  return note("AllGather %p %p %zu %d %p", send, receive, count, type, static_cast<void*>(stream));
}
FAKE ncclResult_t pncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                     ncclComm_t, cudaStream_t stream) {
  return note("ReduceScatter %p %p %zu %d %d %p", send, receive, count, type, op, static_cast<void*>(stream));
}
FAKE ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                            ncclScalarResidence_t residence, ncclComm_t) {
  *op = static_cast<ncclRedOp_t>(77);
  return note("RedOpCreatePreMulSum %p %d %d", scalar, type, residence);
}
FAKE ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t) {
  return note("RedOpDestroy %d", op);
}
FAKE ncclResult_t pncclMemAlloc(void** address, size_t size) {
  *address = reinterpret_cast<void*>(0x7000);
  return note("MemAlloc %zu", size);
}
FAKE ncclResult_t pncclMemFree(void* address) {
  return note("MemFree %p", address);
}
FAKE ncclResult_t pncclCommRegister(const ncclComm_t, void* buffer, size_t size, void** handle) {
  *handle = reinterpret_cast<void*>(0x8000);
  return note("CommRegister %p %zu", buffer, size);
}
FAKE ncclResult_t pncclCommDeregister(const ncclComm_t, void* handle) {
  return note("CommDeregister %p", handle);
}
FAKE ncclResult_t pncclCommWindowRegister(ncclComm_t, void* buffer, size_t size, ncclWindow_t* window, int flags) {
  *window = reinterpret_cast<ncclWindow_t>(0x9000);
  return note("CommWindowRegister %p %zu %d", buffer, size, flags);
}
FAKE ncclResult_t pncclCommWindowDeregister(ncclComm_t, ncclWindow_t window) {
  return note("CommWindowDeregister %p", static_cast<void*>(window));
}
FAKE ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t* info) {
  info->estimatedTime = 42;
  return note("GroupSimulateEnd");
}
FAKE ncclResult_t pncclAlltoAll(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t,
                                cudaStream_t stream) {
  return note("AlltoAll %p %p %zu %d %p", send, receive, count, type, static_cast<void*>(stream));
}
FAKE ncclResult_t pncclGather(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t,
                              cudaStream_t stream) {
  return note("Gather %p %p %zu %d root=%d %p", send, receive, count, type, root, static_cast<void*>(stream));
}
FAKE ncclResult_t pncclScatter(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t,
                               cudaStream_t stream) {
  return note("Scatter %p %p %zu %d root=%d %p", send, receive, count, type, root, static_cast<void*>(stream));
}
FAKE ncclResult_t pncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t,
                            cudaStream_t stream) {
  return note("Send %p %zu %d peer=%d %p", send, count, type, peer, static_cast<void*>(stream));
}
FAKE ncclResult_t pncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t,
                            cudaStream_t stream) {
  return note("Recv %p %zu %d peer=%d %p", receive, count, type, peer, static_cast<void*>(stream));
}
FAKE ncclResult_t pncclGroupStart(void) {
  return note("GroupStart");
}
FAKE ncclResult_t pncclGroupEnd(void) {
  return note("GroupEnd");
}

// Newer functions, which the GPU engine only passes on.
FAKE ncclResult_t pncclCommSuspend(ncclComm_t, int flags) {
  return note("CommSuspend %d", flags);
}
FAKE ncclResult_t pncclCommMemStats(ncclComm_t, ncclCommMemStat_t stat, uint64_t* value) {
  *value = 4711;
  return note("CommMemStats %d", stat);
}
FAKE ncclResult_t pncclAllReduceConfig(const void* send, void* receive, size_t count, ncclDataType_t type,
                                       ncclRedOp_t op, ncclComm_t, cudaStream_t stream,
                                       const ncclCollConfig_t* config) {
  return note("AllReduceConfig %p %p %zu %d %d %p maxCTAs=%d tag=%llu", send, receive, count, type, op,
              static_cast<void*>(stream), config->maxCTAs, static_cast<unsigned long long>(config->userProfilerTag));
}
FAKE ncclResult_t pncclReduceConfig(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                    int root, ncclComm_t, cudaStream_t stream, const ncclCollConfig_t*) {
  return note("ReduceConfig %p %p %zu %d %d root=%d %p", send, receive, count, type, op, root,
              static_cast<void*>(stream));
}
FAKE ncclResult_t pncclPutSignal(const void* local, size_t count, ncclDataType_t type, int peer, ncclWindow_t window,
                                 size_t offset, int index, int context, unsigned flags, ncclComm_t,
                                 cudaStream_t stream) {
  return note("PutSignal %p %zu %d peer=%d %p %zu %d %d %u %p", local, count, type, peer, static_cast<void*>(window),
              offset, index, context, flags, static_cast<void*>(stream));
}
FAKE ncclResult_t pncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void** pointer) {
  *pointer = reinterpret_cast<void*>(0xa000);
  return note("GetPeerDevicePointer %p %zu %d", static_cast<void*>(window), offset, peer);
}
FAKE ncclResult_t pncclParamGetParameter(const char* key, const char** value, int* length) {
  *value = "the vendor's";
  *length = 12;
  return note("ParamGetParameter %s", key);
}
