// nccl.h: what a communicator's memory does while it is idle, and communicators that grow.
#include "api/exports.h"

#include <cstring>
#include <optional>

#include "api/checks.h"
#include "api/group.h"
#include "api/passed_on.h"
#include "api/queued_calls.h"
#include "api/setup.h"
#include "api/setup_on_vendor.h"
#include "base/parameters.h"
#include "bootstrap/make_unique_id.h"

using namespace falcon;
using namespace falcon::api;

namespace {

/// On host memory nothing is given back, since a communicator holds next to none there; but it takes no work, as a
/// program that suspends it may rely on. All members come, as with the vendor's.
Status suspend(ncclComm_t comm, int flags) {
  constexpr const char* function = "ncclCommSuspend";
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  if (flags != NCCL_SUSPEND_MEM)
    return log::decided(Error::invalidArgument("{}: flags is {:#x}, not NCCL_SUSPEND_MEM", function, flags));
  auto expected = ncclComm::Closed::no;
  awaitQueued(**use);
  if (!(*use)->closed.compare_exchange_strong(expected, ncclComm::Closed::suspended))
    return log::decided(Error::invalidUsage(
        "{}: comm {}", function,
        expected == ncclComm::Closed::suspended ? "is suspended already" : "takes no work any longer"));
  return (*use)->host->network().barrier(parameters::initTimeout.value());
}

Status resume(ncclComm_t comm) {
  constexpr const char* function = "ncclCommResume";
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  auto expected = ncclComm::Closed::suspended;
  if (!(*use)->closed.compare_exchange_strong(expected, ncclComm::Closed::no))
    return log::decided(Error::invalidUsage("{}: comm is not suspended", function));
  return (*use)->host->network().barrier(parameters::initTimeout.value());
}

/// All of it is of device memory, of which a communicator of host memory has none.
Status memoryOf(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value) {
  constexpr const char* function = "ncclCommMemStats";
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  if (const Status given = requireOutput(function, "value", value); !given) return given;
  if (stat < ncclStatGpuMemSuspend || stat > ncclStatGpuMemTotal)
    return log::decided(Error::invalidArgument("{}: {} is no statistic", function, static_cast<int>(stat)));
  *value = stat == ncclStatGpuMemSuspended && (*use)->closed == ncclComm::Closed::suspended;
  return {};
}

Status idOf(ncclComm_t comm, ncclUniqueId* id) {
  constexpr const char* function = "ncclCommGetUniqueId";
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  if (const Status given = requireOutput(function, "uniqueId", id); !given) return given;
  if (const Status open = checkOpenOrRevoked(function, **use); !open) return open;
  if ((*use)->vendors) {
    const auto vendors = uniqueIdToGrow(**use);
    if (!vendors) return vendors.error();
    *id = *vendors;
    (*use)->idToGrow = *id;
    return {};
  }
  const auto made = bootstrap::makeOwnUniqueId();
  if (!made) return made.error();
  std::memcpy(id->internal, made->bytes().data(), sizeof id->internal);
  (*use)->idToGrow = *id;
  return {};
}

/// What this rank knows of the id by which a communicator grows: NCCL takes none from any rank but where it was made.
std::optional<ncclUniqueId> knownId(ncclComm& parent, const ncclUniqueId* given) {
  auto kept = std::exchange(parent.idToGrow, std::nullopt);
  return given ? *given : kept;
}

/// The vendor judges what it is given.
Status growVendors(CommunicatorUse parent, Settings settings, int size, const ncclUniqueId* id, int rank,
                   ncclComm_t* output) {
  auto* child = new ncclComm(std::move(settings));
  const auto ours = knownId(*parent, id);
  auto held = std::make_shared<ParentUse>(std::move(parent), true);
  const auto given = id ? std::optional(*id) : std::nullopt;  // it is the caller's only during the call
  return Group::ofThisThread().setUp("ncclCommGrow", {child, output,
                                                      [held, child, size, given, ours, rank] {
                                                        return growOnVendor(**held, *child, size, given, ours, rank);
                                                      },
                                                      true, held});
}

/// A rank that joins; the id says that the vendor's library moves the data.
Status joinVendors(int size, const ncclUniqueId& id, int rank, ncclComm_t* output, const ncclConfig_t* config) {
  constexpr const char* function = "ncclCommGrow";
  auto settings = readSettings(function, config);
  if (!settings) return settings.error();
  Process::instance();
  auto* communicator = new ncclComm(std::move(*settings));
  return Group::ofThisThread().setUp(function, {communicator, output, [communicator, size, id, rank] {
                                                  return joinGrownOnVendor(*communicator, size, id, rank);
                                                }});
}

Status grow(ncclComm_t parent, int size, const ncclUniqueId* id, int rank, ncclComm_t* output,
            const ncclConfig_t* config) {
  constexpr const char* function = "ncclCommGrow";
  if (const Status given = requireOutput(function, "newcomm", output); !given) return given;
  if (!parent) {
    if (const Status given = requireOutput(function, "uniqueId (of a rank that joins)", id); !given) return given;
    if (rank < 0 || rank >= size)
      return log::decided(Error::invalidArgument("{}: rank is {}, not 0 to {}", function, rank, size - 1));
    if (!bootstrap::UniqueId::isOne(id->internal)) return joinVendors(size, *id, rank, output, config);
    return startRank(function, output, size, std::span(id, 1), rank, config);
  }
  auto use = requireReady(function, parent);
  if (!use) return use.error();
  if (const Status open = checkOpenOrRevoked(function, **use); !open) return open;
  auto settings = readChildSettings(function, config, (*use)->settings);
  if (!settings) return settings.error();
  if ((*use)->vendors) return growVendors(std::move(*use), std::move(*settings), size, id, rank, output);
  const Engine& engine = *(*use)->engine;
  if (size <= engine.size())
    return log::decided(
        Error::invalidArgument("{}: nRanks is {}; comm has {} ranks already", function, size, engine.size()));
  if (rank != -1)
    return log::decided(Error::invalidArgument("{}: rank is {}; a rank of comm keeps its own ({}), and passes -1",
                                               function, rank, engine.rank()));
  const auto known = knownId(**use, id);
  const std::string mine = known ? std::string(known->internal, sizeof known->internal) : std::string();
  auto* child = new ncclComm(std::move(*settings));
  auto held = std::make_shared<ParentUse>(std::move(*use), true);
  return Group::ofThisThread().setUp(function, {child, output,
                                                [held, child, size, mine] {
                                                  awaitQueued(**held);
                                                  return establishGrown(**held, *child, size, mine);
                                                },
                                                true, held});
}

}  // namespace

extern "C" {

ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags) {
  if (isVendors(comm))
    return passOnFor<decltype(ncclCommSuspend)>(
        "ncclCommSuspend", comm, [&](auto* function, ncclComm_t handle) { return function(handle, flags); });
  return guarded("ncclCommSuspend", [&] { return suspend(comm, flags); });
}

ncclResult_t pncclCommResume(ncclComm_t comm) {
  if (isVendors(comm))
    return passOnFor<decltype(ncclCommResume)>("ncclCommResume", comm,
                                               [&](auto* function, ncclComm_t handle) { return function(handle); });
  return guarded("ncclCommResume", [&] { return resume(comm); });
}

ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value) {
  if (isVendors(comm))
    return passOnFor<decltype(ncclCommMemStats)>(
        "ncclCommMemStats", comm, [&](auto* function, ncclComm_t handle) { return function(handle, stat, value); });
  return guarded("ncclCommMemStats", [&] { return memoryOf(comm, stat, value); });
}

ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* uniqueId) {
  return guarded("ncclCommGetUniqueId", [&] { return idOf(comm, uniqueId); });
}

ncclResult_t pncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank, ncclComm_t* newcomm,
                           ncclConfig_t* config) {
  return guarded("ncclCommGrow",
                 [&] { return Group::ofThisThread().noted(grow(comm, nRanks, uniqueId, rank, newcomm, config)); });
}

}  // extern "C"

FALCON_WEAK_TWIN(ncclCommSuspend);
FALCON_WEAK_TWIN(ncclCommResume);
FALCON_WEAK_TWIN(ncclCommMemStats);
FALCON_WEAK_TWIN(ncclCommGetUniqueId);
FALCON_WEAK_TWIN(ncclCommGrow);
