// The preload library's functions of nccl_falcon.h. Where what is called is NCCL Falcon's own libnccl.so.2, it gets
// them; else they are checked here and told to the core, and where Falcon is off the obvious is done.
#include "front/interposed.h"

#include <limits>

#include "base/applications_callback.h"
#include "base/layout_rules.h"
#include "front/homes.h"
#include "front/layouts.h"
#include "front/message.h"
#include "front/route.h"

namespace falcon::front {
namespace {

ncclResult_t isNull(const char* function, const char* argument) {
  sayOfCall("%s: %s is NULL", function, argument);
  return ncclInvalidArgument;
}

ncclResult_t isNoWork(double work) {
  sayOfCall("ncclFalconIterationWork: %g is no amount of work; pass a number above 0, such as the tokens computed",
            work);
  return ncclInvalidArgument;
}

ncclResult_t hasSize(const char* function, const char* argument, const char* type, size_t size) {
  sayOfCall("%s: %s->size is %zu; set it to sizeof(%s)", function, argument, size, type);
  return ncclInvalidArgument;
}

ncclResult_t off(const char* function) {
  sayOfCall("%s: Falcon is off in this process (NCCL_FALCON=1 switches it on)", function);
  return ncclInvalidUsage;
}

ncclResult_t noHostMemory(const char* function) {
  sayOfCall(
      "%s: the preload library moves no host memory: that is what NCCL Falcon's libnccl.so.2 does (docs/drop-in.md)",
      function);
  return ncclInvalidUsage;
}

/// A host stream is passed where a CUDA stream goes, and here the vendor would get it.
ncclResult_t noStream(const char* function) {
  sayOfCall(
      "%s: the preload library moves no host memory, so it has no host streams: they are those of NCCL Falcon's "
      "libnccl.so.2 (docs/drop-in.md)",
      function);
  return ncclInvalidUsage;
}

/// Roles go with the communicators and the state behind them, and those are the vendor's here.
ncclResult_t noReshape(const char* function) {
  sayOfCall("%s: the preload library makes no communicators, so it exchanges no roles (docs/reshape.md)", function);
  return ncclInvalidUsage;
}

/// The program's libnccl.so.2 is an earlier version of ours.
ncclResult_t lackingThere(const char* function) {
  sayOfCall("%s is not in the version of NCCL Falcon that the program's libnccl.so.2 is", function);
  return ncclInvalidUsage;
}

ncclResult_t notAStream(const char* function, const void* stream) {
  if (!stream) return ncclSuccess;
  sayOfCall("%s: %p is no host stream: the preload library makes none", function, stream);
  return ncclInvalidArgument;
}

ncclResult_t registerLayout(const Route& byCaller, ncclComm_t comm, const ncclFalconLayout_t* layout) {
  constexpr const char* function = "ncclFalconRegisterLayout";
  if (!comm) return isNull(function, "comm");
  if (!layout) return isNull(function, "layout");
  ncclFalconLayout_t taken;
  if (!takeLayout(*layout, taken)) return hasSize(function, "layout", "ncclFalconLayout_t", layout->size);
  const Route& route = homeOf(comm, byCaller);
  if (!route.vendor->questions.count) {
    sayOfCall("%s: no library of NCCL is loaded whose communicator %p could be", function, static_cast<void*>(comm));
    return ncclInvalidUsage;
  }
  int ranks = 0;
  if (const ncclResult_t asked = route.vendor->questions.count(comm, &ranks); asked != ncclSuccess) return asked;
  char problem[160];
  if (!layoutFits(taken, ranks, problem, sizeof problem)) {
    sayOfCall("%s: %s", function, problem);
    return ncclInvalidArgument;
  }
  if (!keepLayout(comm, taken)) {
    sayOfCall("%s: layouts and callbacks of 256 communicators are kept, and no more", function);
    return ncclInvalidUsage;
  }
  if (route.core) route.core->layoutRegistered(comm, &taken);
  return ncclSuccess;
}

/// The plan of one that nobody plans for.
void equalPlan(const ncclFalconLayout_t& layout, ncclFalconPlan_t& plan) {
  const MicroBatchShare share = equalShare(layout.microBatches, layout.dataParallelSize, layout.dataParallelIndex,
                                           layout.microBatchMultiple > 1 ? layout.microBatchMultiple : 1);
  plan.version = 0;
  plan.microBatches = share.count;
  plan.firstMicroBatch = share.first;
  plan.gradientWeight = static_cast<double>(share.count) / layout.microBatches;
}

struct BeginningIteration {
  IterationBegun next;
  Iterations::Ended ended;
  Iterations::Due due;
};

FALCON_CALLS_APPLICATION void tellApplication(ncclFalconIterationCallback_t callback,
                                              const ncclFalconIterationEnd_t& end, void* context) {
  callback(&end, context);
  FALCON_CALLBACK_ENDS;
}

FALCON_CALLS_APPLICATION void callBack(ncclFalconStreamCallback_t callback, void* context) {
  callback(ncclSuccess, context);
  FALCON_CALLBACK_ENDS;
}

/// Whoever is to be told of the end of the iteration before, with nothing of the library's held.
void tellEnd(ncclComm_t comm, const BeginningIteration& beginning, int health, unsigned int wanted) {
  Iterations::Due due = beginning.due;
  due.end.health = health;
  due.end.wanted = wanted;
  tellApplication(due.callback, due.end, due.context);
  // Where the communicator was destroyed in the callback another one may have its address, which was told nothing.
  withIterations(
      comm,
      [](Iterations& iterations, void*) {
        if (iterations.isTelling) iterations.told();
      },
      nullptr);
}

ncclResult_t iterationBegin(const Route& route, ncclComm_t comm, uint64_t iteration, ncclFalconPlan_t* plan) {
  constexpr const char* function = "ncclFalconIterationBegin";
  BeginningIteration beginning{};
  beginning.next.iteration = iteration;
  beginning.next.entered = steadyNanoseconds();
  if (!comm) return isNull(function, "comm");
  if (!plan) return isNull(function, "plan");
  if (plan->size < sizeof *plan) return hasSize(function, "plan", "ncclFalconPlan_t", plan->size);
  ncclFalconLayout_t layout;
  if (!layoutOf(comm, layout)) {
    sayOfCall("%s: call ncclFalconRegisterLayout for comm first", function);
    return ncclInvalidUsage;
  }
  withIterations(
      comm,
      [](Iterations& iterations, void* with) {
        auto& begins = *static_cast<BeginningIteration*>(with);
        begins.ended = iterations.endedBy(begins.next.iteration);
      },
      &beginning);
  int health = NCCL_FALCON_HEALTH_UNKNOWN;
  unsigned int wanted = 0;
  const Iterations::Ended& ended = beginning.ended;
  if (route.core && ended.isThere)
    route.core->iterationEnds(comm, ended.iteration, (ended.flags & NCCL_FALCON_CALLBACK_RESTARTS) != 0, &health,
                              &wanted);
  ncclResult_t result = ncclSuccess;
  if (!route.core || !route.core->iterationBegins(comm, iteration, plan, &result)) equalPlan(layout, *plan);
  if (result != ncclSuccess) return result;
  beginning.next.planVersion = plan->version;
  beginning.next.microBatches = plan->microBatches;
  beginning.next.firstMicroBatch = plan->firstMicroBatch;
  beginning.next.gradientWeight = plan->gradientWeight;
  withIterations(
      comm,
      [](Iterations& iterations, void* with) {
        auto& begins = *static_cast<BeginningIteration*>(with);
        begins.due = iterations.begin(begins.next, begins.ended);
      },
      &beginning);
  if (beginning.due.callback) tellEnd(comm, beginning, health, wanted);
  return ncclSuccess;
}

ncclResult_t iterationCallback(ncclComm_t comm, ncclFalconIterationCallback_t callback, void* context,
                               unsigned int flags) {
  constexpr const char* function = "ncclFalconIterationCallback";
  if (!comm) return isNull(function, "comm");
  if ((flags & ~NCCL_FALCON_CALLBACK_RESTARTS) != 0) {
    sayOfCall("%s: flags are %#x; NCCL_FALCON_CALLBACK_RESTARTS is the only one", function, flags);
    return ncclInvalidArgument;
  }
  if (keepCallback(comm, callback, context, flags)) return ncclSuccess;
  sayOfCall("%s: layouts and callbacks of 256 communicators are kept, and no more", function);
  return ncclInvalidUsage;
}

}  // namespace
}  // namespace falcon::front

using namespace falcon::front;

// The return address has to be taken in the exported function itself.
#define FALCON_EXTENSION(name, ...)                                    \
  const Route route = extensionRouteFrom(__builtin_return_address(0)); \
  if (route.own) [[unlikely]]                                          \
  return route.own->name ? route.own->name(__VA_ARGS__) : lackingThere("ncclFalcon" #name)

extern "C" {

ncclResult_t ncclFalconGetVersion(int* version) {
  FALCON_EXTENSION(GetVersion, version);
  if (!version) return isNull("ncclFalconGetVersion", "version");
  *version = NCCL_FALCON_API_VERSION;
  return ncclSuccess;
}

ncclResult_t ncclFalconGetHostUniqueId(ncclUniqueId* uniqueId) {
  FALCON_EXTENSION(GetHostUniqueId, uniqueId);
  if (!uniqueId) return isNull("ncclFalconGetHostUniqueId", "uniqueId");
  return noHostMemory("ncclFalconGetHostUniqueId");
}

ncclResult_t ncclFalconRegisterLayout(ncclComm_t comm, const ncclFalconLayout_t* layout) {
  FALCON_EXTENSION(RegisterLayout, comm, layout);
  return registerLayout(route, comm, layout);
}

ncclResult_t ncclFalconIterationBegin(ncclComm_t comm, uint64_t iteration, ncclFalconPlan_t* plan) {
  FALCON_EXTENSION(IterationBegin, comm, iteration, plan);
  return iterationBegin(route, comm, iteration, plan);
}

ncclResult_t ncclFalconIterationCallback(ncclComm_t comm, ncclFalconIterationCallback_t callback, void* context,
                                         unsigned int flags) {
  FALCON_EXTENSION(IterationCallback, comm, callback, context, flags);
  return iterationCallback(comm, callback, context, flags);
}

ncclResult_t ncclFalconRangeBegin(const char* name) {
  FALCON_EXTENSION(RangeBegin, name);
  if (!name) return isNull("ncclFalconRangeBegin", "name");
  if (route.core) route.core->rangeBegins(name);
  return ncclSuccess;
}

ncclResult_t ncclFalconRangeEnd(void) {
  FALCON_EXTENSION(RangeEnd);
  return route.core ? route.core->rangeEnds() : ncclSuccess;
}

ncclResult_t ncclFalconIterationWork(double work) {
  FALCON_EXTENSION(IterationWork, work);
  if (!(work > 0) || work > std::numeric_limits<double>::max()) return isNoWork(work);
  return route.core ? route.core->workTold(work) : ncclSuccess;
}

ncclResult_t ncclFalconStreamCreate(ncclFalconStream_t* stream) {
  FALCON_EXTENSION(StreamCreate, stream);
  return noStream("ncclFalconStreamCreate");
}

ncclResult_t ncclFalconStreamSynchronize(ncclFalconStream_t stream) {
  FALCON_EXTENSION(StreamSynchronize, stream);
  return notAStream("ncclFalconStreamSynchronize", stream);
}

ncclResult_t ncclFalconStreamQuery(ncclFalconStream_t stream) {
  FALCON_EXTENSION(StreamQuery, stream);
  return notAStream("ncclFalconStreamQuery", stream);
}

ncclResult_t ncclFalconStreamCallback(ncclFalconStream_t stream, ncclFalconStreamCallback_t callback, void* context) {
  FALCON_EXTENSION(StreamCallback, stream, callback, context);
  if (!callback) return isNull("ncclFalconStreamCallback", "callback");
  if (!stream) callBack(callback, context);
  return notAStream("ncclFalconStreamCallback", stream);
}

ncclResult_t ncclFalconStreamDestroy(ncclFalconStream_t stream) {
  FALCON_EXTENSION(StreamDestroy, stream);
  return notAStream("ncclFalconStreamDestroy", stream);
}

ncclResult_t ncclFalconRedOpCreateBitwise(ncclRedOp_t* op, ncclFalconBitwise_t which, ncclDataType_t datatype,
                                          ncclComm_t comm) {
  FALCON_EXTENSION(RedOpCreateBitwise, op, which, datatype, comm);
  sayOfCall(
      "ncclFalconRedOpCreateBitwise: the vendor's library, which moves the data, has no bitwise reductions: they are "
      "those of NCCL Falcon's libnccl.so.2 for host memory (docs/drop-in.md)");
  return ncclInvalidUsage;
}

ncclResult_t ncclFalconSuspend(ncclComm_t comm, unsigned int limitMilliseconds) {
  FALCON_EXTENSION(Suspend, comm, limitMilliseconds);
  if (!comm) return isNull("ncclFalconSuspend", "comm");
  return route.core ? route.core->suspend(comm, limitMilliseconds) : off("ncclFalconSuspend");
}

ncclResult_t ncclFalconResume(ncclComm_t comm) {
  FALCON_EXTENSION(Resume, comm);
  if (!comm) return isNull("ncclFalconResume", "comm");
  return route.core ? route.core->resume(comm) : off("ncclFalconResume");
}

// While Falcon is off the job is never held: there is nothing to remember.
ncclResult_t ncclFalconTrapCallbackAdd(ncclFalconTrapCallback_t callback, void* context) {
  FALCON_EXTENSION(TrapCallbackAdd, callback, context);
  if (!callback) return isNull("ncclFalconTrapCallbackAdd", "callback");
  return route.core ? route.core->trapCallbackAdded(callback, context) : ncclSuccess;
}

ncclResult_t ncclFalconTrapCallbackRemove(ncclFalconTrapCallback_t callback, void* context) {
  FALCON_EXTENSION(TrapCallbackRemove, callback, context);
  if (!callback) return isNull("ncclFalconTrapCallbackRemove", "callback");
  return route.core ? route.core->trapCallbackRemoved(callback, context) : ncclSuccess;
}

// While Falcon is off nothing is remembered: what would need it says so.
ncclResult_t ncclFalconRegisterState(ncclComm_t comm, const char* name, void* pointer, size_t bytes,
                                     unsigned int flags) {
  FALCON_EXTENSION(RegisterState, comm, name, pointer, bytes, flags);
  if (!comm) return isNull("ncclFalconRegisterState", "comm");
  if (!name) return isNull("ncclFalconRegisterState", "name");
  if (!pointer) return isNull("ncclFalconRegisterState", "pointer");
  return route.core ? route.core->stateRegistered(comm, name, pointer, bytes, flags) : ncclSuccess;
}

ncclResult_t ncclFalconUnregisterState(ncclComm_t comm, const char* name) {
  FALCON_EXTENSION(UnregisterState, comm, name);
  if (!comm) return isNull("ncclFalconUnregisterState", "comm");
  if (!name) return isNull("ncclFalconUnregisterState", "name");
  return route.core ? route.core->stateUnregistered(comm, name) : ncclSuccess;
}

ncclResult_t ncclFalconCheckpoint(ncclComm_t comm, uint64_t iteration, const char* folder) {
  FALCON_EXTENSION(Checkpoint, comm, iteration, folder);
  if (!comm) return isNull("ncclFalconCheckpoint", "comm");
  return route.core ? route.core->checkpoint(comm, iteration, folder) : off("ncclFalconCheckpoint");
}

ncclResult_t ncclFalconCheckpointSynchronize(ncclComm_t comm) {
  FALCON_EXTENSION(CheckpointSynchronize, comm);
  if (!comm) return isNull("ncclFalconCheckpointSynchronize", "comm");
  return route.core ? route.core->checkpointSynchronize(comm) : ncclSuccess;
}

ncclResult_t ncclFalconRestore(ncclComm_t comm, const char* folder, uint64_t* iteration) {
  FALCON_EXTENSION(Restore, comm, folder, iteration);
  if (!comm) return isNull("ncclFalconRestore", "comm");
  if (!iteration) return isNull("ncclFalconRestore", "iteration");
  return route.core ? route.core->restore(comm, folder, iteration) : off("ncclFalconRestore");
}

ncclResult_t ncclFalconRegisterReshape(ncclComm_t comm, const ncclFalconReshapeHooks_t* hooks) {
  FALCON_EXTENSION(RegisterReshape, comm, hooks);
  if (!comm) return isNull("ncclFalconRegisterReshape", "comm");
  if (!hooks) return isNull("ncclFalconRegisterReshape", "hooks");
  return noReshape("ncclFalconRegisterReshape");
}

ncclResult_t ncclFalconReshape(ncclComm_t comm, const int* roles, int count) {
  FALCON_EXTENSION(Reshape, comm, roles, count);
  if (!comm) return isNull("ncclFalconReshape", "comm");
  if (!roles) return isNull("ncclFalconReshape", "roles");
  return noReshape("ncclFalconReshape");
}

ncclResult_t ncclFalconRole(ncclComm_t comm, int* role) {
  FALCON_EXTENSION(Role, comm, role);
  if (!comm) return isNull("ncclFalconRole", "comm");
  if (!role) return isNull("ncclFalconRole", "role");
  const auto& questions = homeOf(comm, route).vendor->questions;
  if (!questions.userRank) return noReshape("ncclFalconRole");
  return questions.userRank(comm, role);
}

ncclResult_t ncclFalconRoles(ncclComm_t comm, int* roles, int count) {
  FALCON_EXTENSION(Roles, comm, roles, count);
  if (!comm) return isNull("ncclFalconRoles", "comm");
  if (!roles) return isNull("ncclFalconRoles", "roles");
  const auto& questions = homeOf(comm, route).vendor->questions;
  if (!questions.count) return noReshape("ncclFalconRoles");
  int ranks = 0;
  if (const ncclResult_t asked = questions.count(comm, &ranks); asked != ncclSuccess) return asked;
  if (count != ranks) {
    sayOfCall("ncclFalconRoles: room for %d roles of %d ranks of comm", count, ranks);
    return ncclInvalidArgument;
  }
  for (int rank = 0; rank < ranks; ++rank) roles[rank] = rank;
  return ncclSuccess;
}

ncclResult_t ncclFalconWanted(ncclComm_t comm, uint64_t iteration, unsigned int* wanted) {
  FALCON_EXTENSION(Wanted, comm, iteration, wanted);
  if (!comm) return isNull("ncclFalconWanted", "comm");
  if (!wanted) return isNull("ncclFalconWanted", "wanted");
  if (route.core) return route.core->wanted(comm, iteration, wanted);
  *wanted = 0;
  return ncclSuccess;
}

ncclResult_t ncclFalconRestart(ncclComm_t comm, int* exitCode) {
  FALCON_EXTENSION(Restart, comm, exitCode);
  if (!comm) return isNull("ncclFalconRestart", "comm");
  if (!exitCode) return isNull("ncclFalconRestart", "exitCode");
  return route.core ? route.core->restart(comm, exitCode) : off("ncclFalconRestart");
}

}  // extern "C"
