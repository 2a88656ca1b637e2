#include "api/queued_calls.h"

#include <algorithm>
#include <iterator>

#include "api/background.h"
#include "base/clock.h"
#include "base/log.h"

namespace falcon::api {
namespace {

struct Batch {
  std::vector<PendingCall> calls;
  std::vector<CommunicatorUse> inUse;  ///< of the calls, and of others of their group

  /// One process has one hold point; null where Falcon is off.
  HoldPoint* hold() const {
    for (const PendingCall& pending : calls)
      if (HoldPoint* hold = pending.communicator->hooks.hold) return hold;
    return nullptr;
  }
  bool namesNoStream() const {
    return std::any_of(calls.begin(), calls.end(), [](const PendingCall& pending) { return !pending.hostStream; });
  }
};

template <class T>
void addOnce(std::vector<T>& list, const T& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

/// The streams' first: a stream's thread runs the work.
std::vector<Lane*> lanesOf(const std::vector<PendingCall>& calls) {
  std::vector<Lane*> lanes;
  for (const PendingCall& pending : calls)
    if (pending.hostStream) addOnce(lanes, &pending.hostStream->lane);
  for (const PendingCall& pending : calls) addOnce(lanes, &pending.communicator->lane);
  return lanes;
}

/// On the stream's thread, which is inside of the library only now: between its works nobody has to wait for it.
Status runBatch(Batch& batch) {
  HoldPoint* hold = batch.hold();
  if (hold) hold->noteCall(SystemClock::instance().now());
  const Status done = runNow(batch.calls);
  if (hold) hold->noteCall(HoldPoint::resting);
  for (CommunicatorUse& use : batch.inUse) use.endSoon();
  return done;
}

Status outcomeOf(const QueuedWork& work, HoldPoint* hold) {
  work.lanes.front()->wait(hold);
  return work.outcome;
}

}  // namespace

Result<std::shared_ptr<HostStream>> streamFor(const char* function, const ncclComm& communicator, const void* stream) {
  FoundStream found = findStream(stream);
  if (found.kind == FoundStream::Kind::host) return std::move(found.stream);
  if (found.kind == FoundStream::Kind::destroyed)
    return log::decided(Error::invalidArgument("{}: stream {} is a host stream that was destroyed", function, stream));
  if (communicator.engine->kind() == EngineKind::vendor) return std::shared_ptr<HostStream>();
  return log::decided(Error::invalidArgument(
      "{}: stream {} is no host stream of this process, but this communicator moves host memory: "
      "pass NULL, or what ncclFalconStreamCreate made (NCCL_FALCON_ENGINE=vendor moves device "
      "memory)",
      function, stream));
}

Status queueCalls(std::vector<PendingCall> calls, std::vector<CommunicatorUse> inUse, bool blocking) {
  const auto forHost = std::stable_partition(calls.begin(), calls.end(), isForVendor);
  const auto batch = std::make_shared<Batch>();
  batch->calls.assign(std::make_move_iterator(forHost), std::make_move_iterator(calls.end()));
  batch->inUse = std::move(inUse);
  calls.erase(forHost, calls.end());
  if (const Status sound = checkForHost(batch->calls); !sound) return sound;
  if (const Status done = runCalls(calls); !done) return done;

  HoldPoint* hold = batch->hold();
  if (hold) {
    hold->noteCall(SystemClock::instance().now());
    hold->pass();
  }
  for (const PendingCall& pending : batch->calls)
    if (pending.hostStream && pending.communicator->job) pending.hostStream->joinJob(pending.communicator->job);
  const auto work = std::make_shared<QueuedWork>();
  work->lanes = lanesOf(batch->calls);
  work->run = [batch] { return runBatch(*batch); };
  if (!Lane::queue(work))
    return log::decided(Error::invalidArgument("a host stream was destroyed before its group ended"));
  if (!batch->namesNoStream()) return {};
  if (blocking) return outcomeOf(*work, hold);
  std::vector<CommunicatorUse> waiting;
  for (const PendingCall& pending : batch->calls)
    if (!pending.hostStream) waiting.emplace_back(*pending.communicator);
  return runInBackground(std::move(waiting), [work, batch] { return outcomeOf(*work, batch->hold()); });
}

}  // namespace falcon::api
