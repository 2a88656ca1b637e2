// nccl_falcon.h: checked here, decided by the job; without a job (Falcon is off) the obvious is done.
#include "api/exports.h"

#include <array>
#include <cstddef>
#include <functional>

#include "api/communicator.h"
#include "api/guard.h"
#include "api/setup.h"
#include "base/layout_rules.h"
#include "base/log.h"
#include "control/job.h"
#include "control/ranges.h"
#include "control/told_work.h"
#include "control/trap_callbacks.h"

using namespace falcon;
using namespace falcon::api;

namespace {

/// Copies the part of the caller's structure that the caller has.
Result<ncclFalconLayout_t> readLayout(const char* function, const ncclFalconLayout_t* given) {
  if (const Status there = requireOutput(function, "layout", given); !there) return there.error();
  ncclFalconLayout_t layout;
  if (!takeLayout(*given, layout))
    return log::decided(
        Error::invalidArgument("{}: layout->size is {}; set it to sizeof(ncclFalconLayout_t)", function, given->size));
  return layout;
}

Status checkLayout(const char* function, const ncclFalconLayout_t& layout, int ranks) {
  std::array<char, 160> problem{};
  if (layoutFits(layout, ranks, problem.data(), problem.size())) return {};
  return log::decided(Error::invalidArgument("{}: {}", function, problem.data()));
}

Status registerLayout(ncclComm_t comm, const ncclFalconLayout_t* given) {
  constexpr const char* function = "ncclFalconRegisterLayout";
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  const auto layout = readLayout(function, given);
  if (!layout) return layout.error();
  ncclComm& communicator = **use;
  if (const Status fits = checkLayout(function, *layout, communicator.engine->size()); !fits) return fits;
  const control::RegisteredPart checked = control::registeredPartOf(*layout);
  if (communicator.job) {
    if (const Status known = communicator.job->registerLayout(*communicator.engine, checked); !known) return known;
  }
  communicator.layout = checked;
  return {};
}

/// The job of the communicator. Holds the communicator while in use.
Status withJob(const char* function, ncclComm_t comm, const std::function<Status(control::Job&)>& work) {
  auto use = requireMade(function, comm);
  if (!use) return use.error();
  if (!(*use)->job)
    return log::decided(
        Error::invalidUsage("{}: Falcon is off in this process (NCCL_FALCON=1 switches it on)", function));
  return work(*(*use)->job);
}

Status suspendJob(ncclComm_t comm, unsigned limitMilliseconds) {
  constexpr const char* function = "ncclFalconSuspend";
  const auto limit = control::suspensionLimit(function, limitMilliseconds);
  if (!limit) return limit.error();
  return withJob(function, comm, [&](control::Job& job) { return job.suspend(*limit); });
}

Status requireCallback(const char* function, ncclFalconTrapCallback_t callback) {
  if (callback) return {};
  return log::decided(Error::invalidArgument("{}: callback is NULL", function));
}

static_assert(NCCL_FALCON_RELEASED == static_cast<int>(control::TrapCallbacks::Held::no) &&
              NCCL_FALCON_SUSPENDED == static_cast<int>(control::TrapCallbacks::Held::suspended) &&
              NCCL_FALCON_TESTED == static_cast<int>(control::TrapCallbacks::Held::tested));

}  // namespace

extern "C" {

ncclResult_t ncclFalconGetVersion(int* version) {
  return guarded("ncclFalconGetVersion", [&]() -> Status {
    if (const Status given = requireOutput("ncclFalconGetVersion", "version", version); !given) return given;
    *version = NCCL_FALCON_API_VERSION;
    return {};
  });
}

ncclResult_t ncclFalconGetHostUniqueId(ncclUniqueId* uniqueId) {
  return guarded("ncclFalconGetHostUniqueId", [&]() -> Status {
    if (const Status given = requireOutput("ncclFalconGetHostUniqueId", "uniqueId", uniqueId); !given) return given;
    const auto id = newHostUniqueId();
    if (!id) return id.error();
    *uniqueId = *id;
    return {};
  });
}

ncclResult_t ncclFalconRegisterLayout(ncclComm_t comm, const ncclFalconLayout_t* layout) {
  return guarded("ncclFalconRegisterLayout", [&] { return registerLayout(comm, layout); });
}

ncclResult_t ncclFalconRangeBegin(const char* name) {
  if (!name)
    return guarded("ncclFalconRangeBegin", [&] { return requireOutput("ncclFalconRangeBegin", "name", name); });
  control::Ranges::begin(name);
  return ncclSuccess;
}

ncclResult_t ncclFalconRangeEnd(void) {
  return guarded("ncclFalconRangeEnd", [] { return control::Ranges::end(); });
}

ncclResult_t ncclFalconIterationWork(double work) {
  return guarded("ncclFalconIterationWork", [&] { return control::ToldWork::tell(work); });
}

ncclResult_t ncclFalconSuspend(ncclComm_t comm, unsigned int limitMilliseconds) {
  return guarded("ncclFalconSuspend", [&] { return suspendJob(comm, limitMilliseconds); });
}

ncclResult_t ncclFalconResume(ncclComm_t comm) {
  return guarded("ncclFalconResume",
                 [&] { return withJob("ncclFalconResume", comm, [](control::Job& job) { return job.resume(); }); });
}

ncclResult_t ncclFalconTrapCallbackAdd(ncclFalconTrapCallback_t callback, void* context) {
  constexpr const char* function = "ncclFalconTrapCallbackAdd";
  return guarded(function, [&]() -> Status {
    if (const Status given = requireCallback(function, callback); !given) return given;
    control::TrapCallbacks::ofProcess().add(callback, context);
    return {};
  });
}

ncclResult_t ncclFalconTrapCallbackRemove(ncclFalconTrapCallback_t callback, void* context) {
  constexpr const char* function = "ncclFalconTrapCallbackRemove";
  return guarded(function, [&]() -> Status {
    if (const Status given = requireCallback(function, callback); !given) return given;
    if (control::TrapCallbacks::ofProcess().remove(callback, context)) return {};
    return log::decided(Error::invalidArgument("{}: that callback was not added with that context", function));
  });
}

}  // extern "C"
