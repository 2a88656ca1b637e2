// nccl.h: what communicators become: parts of others, revoked, finalized, destroyed, broken.
#include "api/exports.h"

#include <algorithm>

#include "api/background.h"
#include "api/checks.h"
#include "api/group.h"
#include "api/guard.h"
#include "api/queued_calls.h"
#include "api/setup.h"
#include "api/vendors_own_call.h"
#include "base/log.h"

using namespace falcon;
using namespace falcon::api;

namespace {

Status split(ncclComm_t parent, int color, int key, ncclComm_t* output, const ncclConfig_t* config) {
  constexpr const char* function = "ncclCommSplit";
  auto use = requireReady(function, parent);
  if (!use) return use.error();
  if (const Status given = requireOutput(function, "newcomm", output); !given) return given;
  if (color < NCCL_SPLIT_NOCOLOR)
    return log::decided(
        Error::invalidArgument("{}: color is {}; use 0 and up, or NCCL_SPLIT_NOCOLOR", function, color));
  if (const Status open = checkOpenOrRevoked(function, **use); !open) return open;
  auto settings = readChildSettings(function, config, (*use)->settings);
  if (!settings) return settings.error();

  auto* child = new ncclComm(std::move(*settings));
  auto held = std::make_shared<ParentUse>(std::move(*use), true);
  return Group::ofThisThread().setUp(function, {child, output,
                                                [held, child, color, key] {
                                                  awaitQueued(**held);
                                                  return establishSplit(**held, *child, color, key);
                                                },
                                                color >= 0, held});
}

Result<std::vector<Rank>> readExcluded(const char* function, const int* list, int count, const Engine& engine) {
  if (const Status given = requireOutput(function, "excludeRanksList", list); !given) return given.error();
  if (count < 1 || count >= engine.size())
    return log::decided(
        Error::invalidArgument("{}: excludeRanksCount is {}, not 1 to {}", function, count, engine.size() - 1));
  std::vector<Rank> excluded(list, list + count);
  std::sort(excluded.begin(), excluded.end());
  for (const Rank rank : excluded)
    if (rank < 0 || rank >= engine.size())
      return log::decided(
          Error::invalidArgument("{}: excluded rank {} is not 0 to {}", function, rank, engine.size() - 1));
  if (std::adjacent_find(excluded.begin(), excluded.end()) != excluded.end())
    return log::decided(Error::invalidArgument("{}: a rank is excluded twice", function));
  if (std::binary_search(excluded.begin(), excluded.end(), engine.rank()))
    return log::decided(
        Error::invalidArgument("{}: rank {} is excluded: excluded ranks do not call", function, engine.rank()));
  return excluded;
}

Status shrink(ncclComm_t parent, const int* list, int count, ncclComm_t* output, const ncclConfig_t* config,
              int flags) {
  constexpr const char* function = "ncclCommShrink";
  if (flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT)
    return log::decided(Error::invalidArgument("{}: shrinkFlags is {:#x}, which means nothing", function, flags));
  const bool abort = flags == NCCL_SHRINK_ABORT;
  // What is under way is what NCCL_SHRINK_ABORT ends.
  auto use = abort ? requireMade(function, parent) : requireReady(function, parent);
  if (!use) return use.error();
  if (const Status given = requireOutput(function, "newcomm", output); !given) return given;
  if (const Status open = checkOpenOrRevoked(function, **use); !open) return open;
  const auto excluded = readExcluded(function, list, count, *(*use)->engine);
  if (!excluded) return excluded.error();
  auto settings = readChildSettings(function, config, (*use)->settings);
  if (!settings) return settings.error();

  auto* child = new ncclComm(std::move(*settings));
  // With NCCL_SHRINK_ABORT what is being made may wait for a rank that is to be excluded.
  auto held = std::make_shared<ParentUse>(std::move(*use), !abort);
  return Group::ofThisThread().setUp(function, {child, output,
                                                [held, child, excluded = *excluded, abort] {
                                                  if (!abort) awaitQueued(**held);
                                                  return establishShrunk(**held, *child, excluded, abort);
                                                },
                                                true, held});
}

Status revoke(ncclComm_t communicator, int flags) {
  constexpr const char* function = "ncclCommRevoke";
  auto use = requireMade(function, communicator);
  if (!use) return use.error();
  if (flags != NCCL_REVOKE_DEFAULT)
    return log::decided(Error::invalidArgument("{}: revokeFlags is {:#x}, not NCCL_REVOKE_DEFAULT", function, flags));
  (*use)->closed = ncclComm::Closed::revoked;
  return (*use)->engine->revoke();
}

Status finalize(ncclComm_t communicator) {
  constexpr const char* function = "ncclCommFinalize";
  auto use = requireReady(function, communicator);
  if (!use) return use.error();
  const auto closed = (*use)->closed.load();
  if (closed == ncclComm::Closed::finalized)
    return log::decided(Error::invalidArgument("{}: comm was finalized before", function));
  if (closed == ncclComm::Closed::revoked) return log::decided(Error::invalidUsage("{}: comm was revoked", function));
  (*use)->closed = ncclComm::Closed::finalized;
  ncclComm& finalized = **use;
  const auto complete = [&finalized] {
    awaitQueued(finalized);
    return finalized.engine->finalize();
  };
  if (finalized.settings.blocking) return complete();
  std::vector<CommunicatorUse> users;
  users.push_back(std::move(*use));
  // Nothing else tells when a split is done that this rank has no part in.
  const auto last = std::make_shared<ParentUse>(CommunicatorUse(finalized), true);
  last->queue();
  return runInBackground(std::move(users), [complete, last] {
    last->awaitTurn();
    return complete();
  });
}

/// For Destroy and Abort. The communicator is gone whatever this gives, which is what its engine says of that.
/// Communicators inherited across fork() are the parent's: the child lets them be.
Status giveUp(const char* function, ncclComm_t communicator, bool abort) {
  if (!communicator) return {};
  if (const Status ours = requireOurs(function, communicator); !ours)
    return ours.error().code() == ErrorCode::invalidUsage ? Status() : ours;
  const CommunicatorUse use(*communicator);
  const auto state = communicator->state.load(std::memory_order_acquire);
  const bool made = state == ncclComm::State::ready || state == ncclComm::State::working;
  if (abort) communicator->aborted.store(true, std::memory_order_relaxed);
  // The others are told goodbye by whoever lets go last: a process may end as soon as this returns.
  if (!abort && state == ncclComm::State::ready) CommunicatorUse::awaitEnding(*communicator);
  takeFromApplication(*communicator);
  if (!made) return {};
  if (abort && communicator->network) communicator->network->waitForNobody();
  if (abort) {
    const Status done = communicator->engine->abort();
    // Whose call on it is held goes on, and finds it gone.
    if (communicator->hooks.hold) communicator->hooks.hold->lookAgain();
    return done;
  }
  // Who is still inside is the last to use it, and ends it; then nobody is left to be told how that went.
  return use.isLast() ? communicator->end() : Status();
}

/// Who asks how far it is waits for the library: nobody has to wait for this thread to come into it.
void noteWaiting(const ncclComm& communicator) {
  if (communicator.hooks.hold) communicator.hooks.hold->noteCall(HoldPoint::resting);
}

Status asyncError(ncclComm_t communicator, ncclResult_t* output) {
  constexpr const char* function = "ncclCommGetAsyncError";
  if (const Status ours = requireOurs(function, communicator); !ours) return ours;
  if (const Status given = requireOutput(function, "asyncError", output); !given) return given;
  switch (communicator->state.load(std::memory_order_acquire)) {
    case ncclComm::State::working:
      noteWaiting(*communicator);
      [[fallthrough]];
    case ncclComm::State::starting:
      *output = ncclInProgress;
      break;
    case ncclComm::State::failed:
      *output = static_cast<ncclResult_t>(communicator->startError->code());
      break;
    case ncclComm::State::ready: {
      // As NCCL has it: who polls the parent until it is done has the child, or has done its part in it.
      if (!communicator->settings.blocking && communicator->offspring.anyUnderWay()) {
        noteWaiting(*communicator);
        *output = ncclInProgress;
        break;
      }
      // A revoked communicator is well again: that its calls were stopped is what was asked for.
      const bool revoked = communicator->closed.load() == ncclComm::Closed::revoked;
      const Status last = revoked ? Status() : communicator->background.get();
      *output = finish(last ? communicator->engine->asyncError() : last);
    }
  }
  return {};
}

}  // namespace

extern "C" {

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  return guarded("ncclCommSplit",
                 [&] { return Group::ofThisThread().noted(split(comm, color, key, newcomm, config)); });
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm,
                             ncclConfig_t* config, int shrinkFlags) {
  return guarded("ncclCommShrink", [&] {
    return Group::ofThisThread().noted(shrink(comm, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags));
  });
}

ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  return guarded("ncclCommRevoke", [&] { return comm ? revoke(comm, revokeFlags) : Status(); });
}

ncclResult_t pncclCommFinalize(ncclComm_t comm) {
  return guarded("ncclCommFinalize", [&] { return comm ? finalize(comm) : Status(); });
}

ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  return guarded("ncclCommDestroy", [&] { return giveUp("ncclCommDestroy", comm, false); });
}

ncclResult_t pncclCommAbort(ncclComm_t comm) {
  return guarded("ncclCommAbort", [&] { return giveUp("ncclCommAbort", comm, true); });
}

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncErrorOutput) {
  FALCON_LET_VENDORS_OWN_PASS(ncclCommGetAsyncError, comm, asyncErrorOutput)
  return guarded("ncclCommGetAsyncError", [&] { return asyncError(comm, asyncErrorOutput); });
}

}  // extern "C"

FALCON_WEAK_TWIN(ncclCommSplit);
FALCON_WEAK_TWIN(ncclCommShrink);
FALCON_WEAK_TWIN(ncclCommRevoke);
FALCON_WEAK_TWIN(ncclCommFinalize);
FALCON_WEAK_TWIN(ncclCommDestroy);
FALCON_WEAK_TWIN(ncclCommAbort);
FALCON_WEAK_TWIN(ncclCommGetAsyncError);
