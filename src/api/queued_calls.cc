#include "api/queued_calls.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>

#include "api/background.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/per_process.h"

namespace falcon::api {
namespace {

/// The calls of one group.
class Batch final : public QueuedWork {
 public:
  using Ref = boost::intrusive_ptr<Batch>;
  /// An empty one.
  static Ref take();

  /// On the stream's thread, which is inside of the library only now: between its works nobody has to wait for it.
  Status run() override;

  /// One process has one hold point; null where Falcon is off.
  HoldPoint* hold() const {
    for (const PendingCall& pending : calls)
      if (HoldPoint* hold = pending.communicator->hooks.hold) return hold;
    return nullptr;
  }
  bool namesNoStream() const {
    return std::any_of(calls.begin(), calls.end(), [](const PendingCall& pending) { return !pending.hostStream; });
  }

  std::vector<PendingCall> calls;
  std::vector<CommunicatorUse> inUse;  ///< of the calls, and of others of their group

 private:
  void release() override;
};

/// Batches that are done: their memory is for those to come, so that a call on a stream allocates nothing once warm.
struct SpareBatches {
  // As many as are likely to wait at once.
  static constexpr std::size_t most = 256;
  SpareBatches() { batches.reserve(most); }

  std::mutex mutex;
  std::vector<std::unique_ptr<Batch>> batches;
};
constinit PerProcess<SpareBatches> spares;

Batch::Ref Batch::take() {
  SpareBatches& spare = spares.get();
  const std::lock_guard lock(spare.mutex);
  if (spare.batches.empty()) return Ref(new Batch);
  Ref batch(spare.batches.back().release());
  spare.batches.pop_back();
  return batch;
}

void Batch::release() {
  std::unique_ptr<Batch> self(this);
  // A communicator may go with it, or a stream: not under the lock.
  calls.clear();
  inUse.clear();
  lanes.clear();
  outcome = {};
  SpareBatches& spare = spares.get();
  const std::lock_guard lock(spare.mutex);
  if (spare.batches.size() < SpareBatches::most) spare.batches.push_back(std::move(self));
}

template <class T>
void addOnce(std::vector<T>& list, const T& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

/// The streams' first: a stream's thread runs the work.
void findLanes(Batch& batch) {
  for (const PendingCall& pending : batch.calls)
    if (pending.hostStream) addOnce(batch.lanes, &pending.hostStream->lane);
  for (const PendingCall& pending : batch.calls) addOnce(batch.lanes, &pending.communicator->lane);
}

Status Batch::run() {
  HoldPoint* const held = hold();
  if (held) held->noteCall(SystemClock::instance().now());
  const Status done = runNow(calls);
  if (held) held->noteCall(HoldPoint::resting);
  for (CommunicatorUse& use : inUse) use.endSoon();
  return done;
}

Status outcomeOf(const QueuedWork& work, HoldPoint* hold) {
  work.lanes.front()->wait(hold);
  return work.outcome;
}

}  // namespace

Result<std::shared_ptr<HostStream>> streamFor(const char* function, const ncclComm& communicator, const void* stream) {
  FoundStream found = findStream(stream);
  if (found.kind == FoundStream::Kind::host && communicator.vendors)
    return log::decided(Error::invalidArgument(
        "{}: stream {} is a host stream, but this communicator moves device memory: pass a CUDA stream", function,
        stream));
  if (found.kind == FoundStream::Kind::host) return std::move(found.stream);
  if (found.kind == FoundStream::Kind::destroyed)
    return log::decided(Error::invalidArgument("{}: stream {} is a host stream that was destroyed", function, stream));
  if (communicator.vendors) return std::shared_ptr<HostStream>();
  return log::decided(Error::invalidArgument(
      "{}: stream {} is no host stream of this process, but this communicator moves host memory: "
      "pass NULL, or what ncclFalconStreamCreate made (NCCL_FALCON_ENGINE=vendor moves device "
      "memory)",
      function, stream));
}

Status queueCalls(std::vector<PendingCall>& calls, std::vector<CommunicatorUse>& inUse, bool blocking) {
  const auto isForHost = [](const PendingCall& pending) { return pending.communicator->host != nullptr; };
  const Batch::Ref batch = Batch::take();
  std::copy_if(calls.begin(), calls.end(), std::back_inserter(batch->calls), isForHost);
  std::move(inUse.begin(), inUse.end(), std::back_inserter(batch->inUse));
  inUse.clear();
  std::erase_if(calls, isForHost);
  if (const Status sound = checkCalls(batch->calls); !sound) return sound;
  if (const Status done = runCalls(calls); !done) return done;

  HoldPoint* hold = batch->hold();
  if (hold) {
    hold->noteCall(SystemClock::instance().now());
    hold->pass();
  }
  for (const PendingCall& pending : batch->calls)
    if (pending.hostStream && pending.communicator->job) pending.hostStream->joinJob(pending.communicator->job);
  findLanes(*batch);
  if (!Lane::queue(batch))
    return log::decided(Error::invalidArgument("a host stream was destroyed before its group ended"));
  if (!batch->namesNoStream()) return {};
  if (blocking) return outcomeOf(*batch, hold);
  std::vector<CommunicatorUse> waiting;
  for (const PendingCall& pending : batch->calls)
    if (!pending.hostStream) waiting.emplace_back(*pending.communicator);
  return runInBackground(std::move(waiting), [batch] { return outcomeOf(*batch, batch->hold()); });
}

}  // namespace falcon::api
