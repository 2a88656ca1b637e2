// The core's functions as the front calls them: none fails or throws.
#include "preload/core.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "base/contained.h"
#include "base/log.h"
#include "base/log_file.h"
#include "base/never_destroyed.h"
#include "base/parameters.h"
#include "bootstrap/make_unique_id.h"
#include "control/ranges.h"
#include "control/told_work.h"
#include "control/trap_callbacks.h"
#include "control/vendor_events.h"
#include "control/vendors_profiler.h"
#include "gpu/unique_id_room.h"
#include "preload/checkpoint_calls.h"
#include "preload/fixed_rendezvous.h"
#include "preload/letting_go.h"
#include "preload/pending_children.h"
#include "preload/watched_calls.h"

namespace falcon::preload {
namespace {

using front::VendorQuestions;
using front::WatchedCall;

NeverDestroyed<Directory> keptDirectory;
NeverDestroyed<PendingChildren> keptChildren;
NeverDestroyed<FixedRendezvous> keptRendezvous;
Directory& directory = keptDirectory.value;
PendingChildren& pendingChildren = keptChildren.value;
FixedRendezvous& fixedRendezvous = keptRendezvous.value;
thread_local std::vector<PendingChild> childrenOfGroup;  ///< of the group that the thread is in

/// Falcon does without, and says so where there is memory for the words: what it lacks is memory or a thread.
template <class Work>
auto carefully(Work&& work) noexcept -> decltype(work()) {
  const auto say = [](const char* problem) {
    log::notice("Falcon does not watch a call or a communicator: {}", problem);
  };
  if constexpr (std::is_void_v<decltype(work())>) {
    contained(work, say);
  } else {
    decltype(work()) result{};
    contained([&] { result = work(); }, say);
    return result;
  }
}

/// Many programs never destroy their communicators: when the process exits the other ranks are told that it leaves.
struct Farewell {
  ~Farewell() {
    carefully([] { directory.endAll(); });
  }
} farewell;

/// In a call of the application's: the vendor's communicator is known by its handle from now on.
void adopt(Making& making, ncclComm_t handle, Rank rank, int size, int device) {
  if (!directory.insert(handle, making.made(rank, size, device)))
    log::notice("Falcon watches {} communicators of a process at a time, and no more", Directory::capacity);
}

/// -1: it cannot be known.
int deviceOf(ncclComm_t handle, const VendorQuestions& ask) {
  int device = -1;
  return ask.device && ask.device(handle, &device) == ncclSuccess ? device : -1;
}
/// Who is still in the making is not asked, but at the first call on it. -1: not known yet.
int deviceNow(ncclComm_t handle, ncclResult_t result, const VendorQuestions& ask) {
  return result == ncclSuccess && !WatchedCalls::ofThisThread().inGroup() ? deviceOf(handle, ask) : -1;
}

bool adoptChild(const PendingChild& child, ncclComm_t handle) {
  int size = 0, rank = -1;
  const VendorQuestions& ask = *child.questions;
  if (!ask.count || !ask.userRank || ask.count(handle, &size) != ncclSuccess ||
      ask.userRank(handle, &rank) != ncclSuccess) {
    child.making->giveUp();
    return false;
  }
  adopt(*child.making, handle, rank, size, deviceOf(handle, ask));
  return true;
}

Directory::Use find(ncclComm_t handle) {
  Directory::Use use = directory.find(handle);
  if (!use && pendingChildren.any()) [[unlikely]] {
    const auto child = pendingChildren.take(handle);
    if (child && adoptChild(*child, handle)) return directory.find(handle);
  }
  return use;
}

void uniqueIdMade(ncclUniqueId* id) noexcept {
  carefully([&] {
    // With NCCL_COMM_ID every process makes the id for itself, and all have to make the same: it stays as it is.
    if (!bootstrap::isRendezvousFixed()) gpu::furnish(*id);
  });
}

void growthIdMade(ncclComm_t parent, ncclUniqueId* id) noexcept {
  carefully([&] {
    const Directory::Use use = find(parent);
    if (!use) return log::info("what a communicator that is not watched grows to is not watched either");
    if (const auto ours = gpu::furnish(*id)) (*use).keepGrowthId(*ours);
  });
}

struct Begun {
  std::shared_ptr<Making> making;
  int size, rank;
  const VendorQuestions* questions;
};

void* initBegins(const ncclUniqueId* id, int size, int rank, const VendorQuestions* questions) noexcept {
  return carefully([&]() -> void* {
    if (size < 1 || rank < 0 || rank >= size) return nullptr;
    auto ours = gpu::read(*id);
    if (!ours && bootstrap::isRendezvousFixed()) ours = fixedRendezvous.next(rank, size);
    if (!ours) return nullptr;
    auto begun = std::make_unique<Begun>();
    *begun = {Making::start(joinById(*ours, rank, size)), size, rank, questions};
    return begun.release();
  });
}

bool wasMade(ncclResult_t result) {
  return result == ncclSuccess || result == ncclInProgress;
}

void initEnds(void* made, ncclResult_t result, ncclComm_t handle) noexcept {
  carefully([&] {
    const std::unique_ptr<Begun> begun(static_cast<Begun*>(made));
    if (!wasMade(result) || !handle) return begun->making->giveUp();
    adopt(*begun->making, handle, begun->rank, begun->size, deviceNow(handle, result, *begun->questions));
  });
}

void initAllEnded(const ncclComm_t* handles, int count, const VendorQuestions* questions) noexcept {
  carefully([&] {
    const auto id = bootstrap::makeOwnUniqueId();
    if (!id) return log::notice("ncclCommInitAll's communicators are not watched: {}", id.error().message());
    for (int rank = 0; rank < count; ++rank) {
      const auto making = Making::start(joinById(*id, rank, count));
      adopt(*making, handles[rank], rank, count, deviceNow(handles[rank], ncclSuccess, *questions));
    }
  });
}

/// The call that makes the child has returned, or the group that it was in. In this very call its output is surely the
/// application's still, and later it may be gone: so the handle is taken from there now, if the vendor is done.
void settle(PendingChild child, ncclResult_t result) {
  if (!wasMade(result)) return child.making->giveUp();
  if (result == ncclSuccess && *child.output)
    adoptChild(child, *child.output);
  else
    pendingChildren.add(std::move(child));
}

/// A step over the parent's network, and the child that comes of it; `takesPart`: this rank will be in the child.
void childBegins(const std::shared_ptr<WatchedCommunicator>& parent, Making::Join join, bool takesPart,
                 ncclComm_t* output, ncclResult_t result, const VendorQuestions* questions) {
  const auto making = Making::startBehind(parent, std::move(join));
  if (!takesPart || !output) return;
  PendingChild child{making, output, questions, nullptr};
  if (WatchedCalls::ofThisThread().inGroup())
    childrenOfGroup.push_back(std::move(child));
  else
    settle(std::move(child), result);
}

void splitEnded(ncclComm_t parent, int color, int key, ncclComm_t* child, ncclResult_t result,
                const VendorQuestions* questions) noexcept {
  carefully([&] {
    const Directory::Use use = find(parent);
    if (!use || !wasMade(result)) return;
    const std::uint64_t number = (*use).nextStep();
    childBegins(use.share(), joinBySplit(use.share(), number, color, key), color >= 0, child, result, questions);
  });
}

void shrinkEnded(ncclComm_t parent, const int* excluded, int count, ncclComm_t* child, ncclResult_t result,
                 const VendorQuestions* questions) noexcept {
  carefully([&] {
    const Directory::Use use = find(parent);
    if (!use || !wasMade(result) || count < 0 || (count > 0 && !excluded)) return;
    std::vector<Rank> without(excluded, excluded + count);
    std::sort(without.begin(), without.end());
    const std::uint64_t number = (*use).nextShrink(without);
    childBegins(use.share(), joinByShrink(use.share(), number, std::move(without)), true, child, result, questions);
  });
}

// After the vendor's, as a split: where that refuses, no step over the parent's network is begun.
void growEnded(ncclComm_t parent, int size, const ncclUniqueId* id, ncclComm_t child, ncclResult_t result) noexcept {
  carefully([&] {
    const Directory::Use use = find(parent);
    if (!use || !wasMade(result) || !child || size <= (*use).size()) return;
    const std::uint64_t number = (*use).nextStep();
    const auto kept = (*use).takeGrowthId();
    const auto making =
        Making::startBehind(use.share(), joinByGrowth(use.share(), number, size, kept || !id ? kept : gpu::read(*id)));
    adopt(*making, child, (*use).rank(), size, -1);  // nonblocking, NCCL says success before it is done
  });
}

using Ending = std::shared_ptr<WatchedCommunicator>;

void* communicatorEnds(ncclComm_t communicator) noexcept {
  return carefully([&]() -> void* {
    if (const auto ended = directory.remove(communicator)) {
      letGoOfCallsOn(*ended, directory);
      return std::make_unique<Ending>(ended).release();
    }
    if (!pendingChildren.any()) return nullptr;
    if (const auto unused = pendingChildren.take(communicator)) unused->making->giveUp();
    return nullptr;
  });
}

void communicatorEnded(void* ending, bool aborted) noexcept {
  const std::unique_ptr<Ending> ended(static_cast<Ending*>(ending));
  carefully([&] { (*ended)->end(aborted ? Goodbye::said : Goodbye::answered); });
}

/// Its call is a mark that is not null: the thread knows by itself what it has begun.
front::CallBegun callBegins(const WatchedCall* call, const VendorQuestions* questions) noexcept {
  return carefully([&]() -> front::CallBegun {
    WatchedCalls& calls = WatchedCalls::ofThisThread();
    Directory::Use use = find(call->communicator);
    if (use && (*use).isToBeAskedForDevice()) [[unlikely]]
      (*use).setDevice(deviceOf(call->communicator, *questions));
    const auto begun = calls.begin(std::move(use), *call);
    if (begun == WatchedCalls::Begun::refused) [[unlikely]]
      log::notice("a call is refused: its communicator was destroyed or aborted while the job was held");
    return {begun == WatchedCalls::Begun::told ? &calls : nullptr, begun == WatchedCalls::Begun::refused};
  });
}

void callEnds(void* calls, ncclResult_t result) noexcept {
  static_cast<WatchedCalls*>(calls)->leave(result);
}

void groupStarted() noexcept {
  carefully([] { WatchedCalls::ofThisThread().groupStarted(); });
}

bool groupEnds() noexcept {
  bool dropped = false;
  carefully([&] {
    dropped = WatchedCalls::ofThisThread().groupEnds();
    if (dropped) [[unlikely]]
      log::notice("a group is dropped: a communicator of it was destroyed or aborted while the job was held");
  });
  return dropped;
}

/// Of a group whose outermost end has come back.
void settleChildren(ncclResult_t result) noexcept {
  if (childrenOfGroup.empty() || WatchedCalls::ofThisThread().inGroup()) [[likely]]
    return;
  for (PendingChild& child : std::exchange(childrenOfGroup, {})) carefully([&] { settle(std::move(child), result); });
}

void groupEnded(ncclResult_t result) noexcept {
  carefully([&] { WatchedCalls::ofThisThread().groupEnded(result); });
  settleChildren(result);
}

void groupDropped() noexcept {
  carefully([] { WatchedCalls::ofThisThread().groupDropped(); });
  settleChildren(ncclInvalidUsage);  // nothing was made
}

void layoutRegistered(ncclComm_t communicator, const ncclFalconLayout_t* layout) noexcept {
  carefully([&] {
    const Directory::Use use = find(communicator);
    if (!use) return log::info("a layout was registered for a communicator that is not watched");
    (*use).setPart(control::registeredPartOf(*layout));
  });
}

bool iterationBegins(ncclComm_t communicator, std::uint64_t iteration, ncclFalconPlan_t* output,
                     ncclResult_t* result) noexcept {
  return carefully([&] {
    const Directory::Use use = find(communicator);
    const Watch* const watch = use ? (*use).watch() : nullptr;
    if (!watch || !(*use).hasLayout()) return false;
    const auto plan = watch->job->iterationBegin(*use, iteration);
    if (!plan) {
      *result = static_cast<ncclResult_t>(plan.error().code());
      return true;
    }
    output->version = plan->version;
    output->microBatches = plan->microBatches;
    output->firstMicroBatch = plan->firstMicroBatch;
    output->gradientWeight = plan->gradientWeight;
    return true;
  });
}

/// Ranges that a thread has open. The job begins beside the vendor's making of a communicator, so it may begin inside
/// of one: that is not recorded, and ended well all the same.
struct OpenRanges {
  int unrecorded = 0, recorded = 0;  ///< the former are all outside of the latter
};
thread_local OpenRanges openRanges;

void rangeBegins(const char* name) noexcept {
  const bool recorded = control::Ranges::areRecorded();
  ++(recorded ? openRanges.recorded : openRanges.unrecorded);
  if (recorded) carefully([&] { control::Ranges::begin(name); });
}

ncclResult_t resultOf(const Status& status) {
  return status ? ncclSuccess : static_cast<ncclResult_t>(status.error().code());
}

ncclResult_t rangeEnds() noexcept {
  if (openRanges.recorded == 0 && openRanges.unrecorded > 0) return --openRanges.unrecorded, ncclSuccess;
  if (openRanges.recorded > 0) --openRanges.recorded;
  return carefully([&] { return resultOf(control::Ranges::end()); });
}

ncclResult_t workTold(double work) noexcept {
  return carefully([&] { return resultOf(control::ToldWork::tell(work)); });
}

/// Unlike what is only watched, what the application asked for must not seem done where there was no memory for it.
template <class Work>
ncclResult_t answered(const char* function, Work&& work) noexcept {
  ncclResult_t result = ncclSystemError;
  contained([&] { result = resultOf(work()); }, [&](const char* problem) { log::notice("{}: {}", function, problem); });
  return result;
}

/// Runs `work` on the job that knows the communicator.
ncclResult_t withJob(const char* function, ncclComm_t communicator,
                     const std::function<Status(control::Job&)>& work) noexcept {
  return answered(function, [&]() -> Status {
    const Directory::Use use = find(communicator);
    const Watch* const watch = use ? (*use).watch() : nullptr;
    if (watch) return work(*watch->job);
    return log::decided(Error::invalidUsage(
        "{}: Falcon does not watch comm: it was made a moment ago, or NCCL_DEBUG=INFO says why", function));
  });
}

/// Runs `work` on what Falcon knows of a communicator, watched yet or not.
template <class Work>
ncclResult_t withCommunicator(const char* function, ncclComm_t communicator, Work&& work) noexcept {
  return answered(function, [&]() -> Status {
    const Directory::Use use = find(communicator);
    if (use) return work(use);
    return log::decided(Error::invalidUsage("{}: Falcon does not know comm: NCCL_DEBUG=INFO says why", function));
  });
}

ncclResult_t suspend(ncclComm_t communicator, unsigned limitMilliseconds) noexcept {
  constexpr const char* function = "ncclFalconSuspend";
  return withJob(function, communicator, [&](control::Job& job) -> Status {
    const auto limit = control::suspensionLimit(function, limitMilliseconds);
    if (!limit) return limit.error();
    return job.suspend(*limit);
  });
}

ncclResult_t resume(ncclComm_t communicator) noexcept {
  return withJob("ncclFalconResume", communicator, [](control::Job& job) { return job.resume(); });
}

ncclResult_t trapCallbackAdded(ncclFalconTrapCallback_t callback, void* context) noexcept {
  return answered("ncclFalconTrapCallbackAdd", [&]() -> Status {
    control::TrapCallbacks::ofProcess().add(callback, context);
    return {};
  });
}

ncclResult_t trapCallbackRemoved(ncclFalconTrapCallback_t callback, void* context) noexcept {
  constexpr const char* function = "ncclFalconTrapCallbackRemove";
  return answered(function, [&]() -> Status {
    if (control::TrapCallbacks::ofProcess().remove(callback, context)) return {};
    return log::decided(Error::invalidArgument("{}: that callback was not added with that context", function));
  });
}

ncclResult_t stateRegistered(ncclComm_t communicator, const char* name, void* pointer, std::size_t bytes,
                             unsigned flags) noexcept {
  return withCommunicator("ncclFalconRegisterState", communicator, [&](const Directory::Use& use) {
    return (*use).checkpoints().registerState(name, pointer, bytes, flags);
  });
}

ncclResult_t stateUnregistered(ncclComm_t communicator, const char* name) noexcept {
  return withCommunicator("ncclFalconUnregisterState", communicator,
                          [&](const Directory::Use& use) { return (*use).checkpoints().unregisterState(name); });
}

ncclResult_t checkpoint(ncclComm_t communicator, std::uint64_t iteration, const char* folder) noexcept {
  return withCommunicator("ncclFalconCheckpoint", communicator,
                          [&](const Directory::Use& use) { return takeCheckpoint(use, iteration, folder); });
}

ncclResult_t checkpointSynchronize(ncclComm_t communicator) noexcept {
  return withCommunicator("ncclFalconCheckpointSynchronize", communicator,
                          [](const Directory::Use& use) { return (*use).checkpoints().synchronize(); });
}

ncclResult_t restore(ncclComm_t communicator, const char* folder, std::uint64_t* iteration) noexcept {
  return withCommunicator("ncclFalconRestore", communicator,
                          [&](const Directory::Use& use) { return restoreCheckpoint(use, folder, *iteration); });
}

/// 0 of a communicator that is not watched, or not yet: Falcon asks only those who are, all of them.
ncclResult_t wanted(ncclComm_t communicator, std::uint64_t iteration, unsigned* output) noexcept {
  *output = 0;
  return carefully([&] {
    const Directory::Use use = find(communicator);
    const Watch* const watch = use ? (*use).watch() : nullptr;
    const bool restart = watch && watch->job->restartWanted(iteration);
    *output = restart ? NCCL_FALCON_WANTED_CHECKPOINT | NCCL_FALCON_WANTED_RESTART : 0;
    return ncclSuccess;
  });
}

ncclResult_t restart(ncclComm_t communicator, int* exitCode) noexcept {
  return withCommunicator("ncclFalconRestart", communicator,
                          [&](const Directory::Use& use) { return requestRestart(use, *exitCode); });
}

void iterationEnds(ncclComm_t communicator, std::uint64_t iteration, bool asks, int* health,
                   unsigned* output) noexcept {
  carefully([&] {
    const Directory::Use use = find(communicator);
    const Watch* const watch = use ? (*use).watch() : nullptr;
    if (!watch) return;
    const bool restart = asks ? watch->job->restartWanted(iteration) : watch->job->restartDecided(iteration);
    *output = restart ? NCCL_FALCON_WANTED_CHECKPOINT | NCCL_FALCON_WANTED_RESTART : 0;
    *health = static_cast<int>(watch->job->health());
  });
}

/// In a forked child the parent's communicators and threads are gone.
void inChild() {
  directory.forgetAll();
  pendingChildren.forgetAll();
  new (&childrenOfGroup) std::vector<PendingChild>;  // no memory is given back, as there
  fixedRendezvous.forgetAll();
  carefully([] { WatchedCalls::ofThisThread().forget(); });
  control::VendorEvents::childBegins();
  control::Ranges::childBegins();
  log::reset();
}

constexpr front::CoreFunctions functions{uniqueIdMade,
                                         initBegins,
                                         initEnds,
                                         initAllEnded,
                                         splitEnded,
                                         shrinkEnded,
                                         growthIdMade,
                                         growEnded,
                                         communicatorEnds,
                                         communicatorEnded,
                                         callBegins,
                                         callEnds,
                                         groupStarted,
                                         groupEnds,
                                         groupEnded,
                                         groupDropped,
                                         layoutRegistered,
                                         iterationBegins,
                                         rangeBegins,
                                         rangeEnds,
                                         workTold,
                                         suspend,
                                         resume,
                                         trapCallbackAdded,
                                         trapCallbackRemoved,
                                         stateRegistered,
                                         stateUnregistered,
                                         checkpoint,
                                         checkpointSynchronize,
                                         restore,
                                         wanted,
                                         restart,
                                         iterationEnds};

const front::CoreFunctions* start(const char* build) {
  if (std::strcmp(build, FALCON_BUILD) != 0) return nullptr;
  log::makeRoomForVendor();  // before the first line
  if (!parameters::falcon.value()) return nullptr;
  static constinit std::atomic_flag begun;  // nobody waits for who was first, who may need the loader
  if (begun.test_and_set()) return &functions;
  if (pthread_atfork(nullptr, nullptr, inChild) != 0)
    log::notice("fork() handlers could not be registered: do not use NCCL in forked children");
  log::info("NCCL Falcon watches the communicators of the vendor's NCCL; NCCL_FALCON=0 turns it off");
  contained([] { control::offerProfiler(FALCON_BUILD); },
            [](const char* why) { log::info("Falcon does not see the vendor's channels and proxies: {}", why); });
  return &functions;
}

}  // namespace

const front::CoreFunctions* coreFunctions(const char* build) noexcept {
  return carefully([&] { return start(build); });
}

}  // namespace falcon::preload
