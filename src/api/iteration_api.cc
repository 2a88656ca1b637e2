// nccl_falcon.h: where iterations begin, and who is told of their ends.
#include "api/exports.h"

#include <memory>

#include "api/communicator.h"
#include "api/guard.h"
#include "base/applications_callback.h"
#include "base/log.h"
#include "control/job.h"

using namespace falcon;
using namespace falcon::api;

namespace {

using control::Health;
using control::IterationPlan;
static_assert(NCCL_FALCON_HEALTH_UNKNOWN == static_cast<int>(Health::unknown) &&
              NCCL_FALCON_HEALTH_HEALTHY == static_cast<int>(Health::healthy) &&
              NCCL_FALCON_HEALTH_SUSPECTED == static_cast<int>(Health::suspected) &&
              NCCL_FALCON_HEALTH_SLOW == static_cast<int>(Health::slow));
static_assert(NCCL_FALCON_CHANGED_PLAN == changedPlan && NCCL_FALCON_CHANGED_MICRO_BATCHES == changedMicroBatches &&
              NCCL_FALCON_CHANGED_ROLE == changedRole);

/// An end that is to be told once nothing of the library's is held.
struct DueEnd {
  std::shared_ptr<Iterations> of;
  Iterations::Ends::Due due{};
};

/// May hold the caller while a restart is being agreed.
unsigned wantedAt(control::Job& job, const Iterations::Ends::Ended& ended) {
  const bool asks = (ended.flags & NCCL_FALCON_CALLBACK_RESTARTS) != 0;
  const bool restart = asks ? job.restartWanted(ended.iteration) : job.restartDecided(ended.iteration);
  return restart ? NCCL_FALCON_WANTED_CHECKPOINT | NCCL_FALCON_WANTED_RESTART : 0;
}

Result<DueEnd> beginIteration(ncclComm_t comm, std::uint64_t iteration, ncclFalconPlan_t* output) {
  constexpr const char* function = "ncclFalconIterationBegin";
  const long long entered = steadyNanoseconds();
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  if (const Status given = requireOutput(function, "plan", output); !given) return given.error();
  if (output->size < sizeof(ncclFalconPlan_t))
    return log::decided(
        Error::invalidArgument("{}: plan->size is {}; set it to sizeof(ncclFalconPlan_t)", function, output->size));
  ncclComm& communicator = **use;
  if (!communicator.layout)
    return log::decided(Error::invalidUsage("{}: call ncclFalconRegisterLayout for comm first", function));
  control::Job* const job = communicator.job.get();
  const auto ended = communicator.iterations->endedBy(iteration);
  const unsigned wanted = job && ended.isThere ? wantedAt(*job, ended) : 0;
  if (job && communicator.reshape.prepare)
    if (const Status shaped = reshapeBefore(function, communicator, iteration); !shaped) return shaped.error();
  const auto plan = job ? job->iterationBegin(*communicator.engine, iteration)
                        : Result<IterationPlan>(control::equalSplit(*communicator.layout));
  if (!plan) return plan.error();
  output->version = plan->version;
  output->microBatches = plan->microBatches;
  output->firstMicroBatch = plan->firstMicroBatch;
  output->gradientWeight = plan->gradientWeight;
  DueEnd end{communicator.iterations};
  end.due = end.of->begin({iteration, entered, plan->version, plan->microBatches, plan->firstMicroBatch,
                           plan->gradientWeight, communicator.reshape.roleOf(communicator.engine->rank())},
                          ended);
  end.due.end.wanted = wanted;
  if (job) end.due.end.health = static_cast<int>(job->health());
  return end;
}

FALCON_CALLS_APPLICATION void tellApplication(ncclFalconIterationCallback_t callback,
                                              const ncclFalconIterationEnd_t& end, void* context) {
  callback(&end, context);
  FALCON_CALLBACK_ENDS;
}

Status beginAndTell(ncclComm_t comm, std::uint64_t iteration, ncclFalconPlan_t* output) {
  const auto end = beginIteration(comm, iteration, output);
  if (!end) return end.error();
  const auto& due = end->due;
  if (!due.callback) return {};
  // From here on the communicator may be gone, by what is called.
  tellApplication(due.callback, due.end, due.context);
  end->of->told();
  return {};
}

Status setCallback(ncclComm_t comm, ncclFalconIterationCallback_t callback, void* context, unsigned flags) {
  constexpr const char* function = "ncclFalconIterationCallback";
  const auto use = requireMade(function, comm);
  if (!use) return use.error();
  if ((flags & ~NCCL_FALCON_CALLBACK_RESTARTS) != 0)
    return log::decided(
        Error::invalidArgument("{}: flags are {:#x}; NCCL_FALCON_CALLBACK_RESTARTS is the only one", function, flags));
  (*use)->iterations->tell(callback, context, flags);
  return {};
}

}  // namespace

extern "C" {

ncclResult_t ncclFalconIterationBegin(ncclComm_t comm, uint64_t iteration, ncclFalconPlan_t* plan) {
  return guarded("ncclFalconIterationBegin", [&] { return beginAndTell(comm, iteration, plan); });
}

ncclResult_t ncclFalconIterationCallback(ncclComm_t comm, ncclFalconIterationCallback_t callback, void* context,
                                         unsigned int flags) {
  return guarded("ncclFalconIterationCallback", [&] { return setCallback(comm, callback, context, flags); });
}

}  // extern "C"
