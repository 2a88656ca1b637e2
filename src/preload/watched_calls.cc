#include "preload/watched_calls.h"

#include <algorithm>

#include "base/clock.h"
#include "instrument/call_labels.h"

namespace falcon::preload {
namespace {

HoldPoint* holdOf(const Watch* watch) {
  return watch ? watch->hooks.hold : nullptr;
}

bool hasFailed(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

void fillIn(Call& call, const front::WatchedCall& given) {
  call.operation = given.operation;
  call.type = static_cast<DataType>(given.type);
  call.reduction = given.reduction < reduceOpCount ? static_cast<ReduceOp>(given.reduction) : ReduceOp::preMulSum;
  call.count = given.count;
  call.peer = given.peer;
}

/// What cannot be read goes without: what it is worth the vendor decides.
CallLabels labelsOf(const front::WatchedCall& call) {
  if (!call.config || !instrument::isInitialized(*call.config)) return {};
  const auto labels = instrument::labelsOf(*call.config);
  return labels ? *labels : CallLabels();
}

/// What the vendor will refuse, or knows and we do not: it is not counted on any rank.
bool isKnown(const front::WatchedCall& call, const WatchedCommunicator& communicator) {
  const bool peerFits = !hasPeer(call.operation) || (call.peer >= 0 && call.peer < communicator.size());
  return peerFits && call.type >= 0 && call.type < dataTypeCount && call.reduction >= 0;
}

}  // namespace

/// All calls that are open, as one event: held as a whole or not at all.
class WatchedCalls::Entering final : public CallEvent {
 public:
  explicit Entering(std::vector<Open>& open) : open_(open) {}
  void enter() noexcept override {
    for (Open& each : open_) {
      CallCounts& counts = (*each.use).counts();
      each.record.sequence = each.call.operation == Operation::send      ? counts.sentTo(each.call.peer)
                             : each.call.operation == Operation::receive ? counts.receivedFrom(each.call.peer)
                                                                         : counts.collectives();
      counts.enter(each.call);
    }
  }
  void takeBack() noexcept override {
    for (auto each = open_.rbegin(); each != open_.rend(); ++each) (*each->use).counts().takeBack(each->call);
  }

 private:
  std::vector<Open>& open_;
};

WatchedCalls& WatchedCalls::ofThisThread() {
  thread_local WatchedCalls calls;
  return calls;
}

bool WatchedCalls::begin(Directory::Use use, const front::WatchedCall& given) {
  if (!use || !isKnown(given, *use)) return false;
  const Watch* const watch = (*use).watch();
  Open& open = open_.emplace_back();  // filled in its place: a copy takes a tenth of a call
  open.use = std::move(use);
  fillIn(open.call, given);
  open.stream = given.stream;
  open.watch = watch;
  if (given.config) [[unlikely]]
    open.labels = labelsOf(given);
  if (inGroup()) return false;
  enter();
  return true;
}

void WatchedCalls::enter() {
  if (open_.empty()) return;
  const Nanoseconds now = SystemClock::instance().now();
  HoldPoint* hold = nullptr;  // one process has one
  for (const Open& each : open_)
    if (HoldPoint* const its = holdOf(each.watch)) hold = its;
  Entering entering(open_);
  entering.enter();
  if (hold) hold->passEvent(entering);
  const bool grouped = inGroup();
  for (Open& each : open_) {
    if (!each.watch || !each.watch->hooks.calls) continue;
    const Call& call = each.call;
    each.record = {each.watch->id,
                   call.operation,
                   call.type,
                   call.reduction,
                   grouped,
                   call.peer,
                   call.count,
                   each.record.sequence,
                   now,
                   0ns,
                   (*each.use).rank()};
    each.flight = each.watch->hooks.calls->enter(each.record, each.watch->place);
    if (!each.labels.empty()) [[unlikely]]
      each.watch->hooks.calls->label(LabelledCall::of(each.record, each.labels));
  }
}

void WatchedCalls::leave(ncclResult_t result) {
  if (open_.empty()) return;
  const Nanoseconds now = SystemClock::instance().now();
  const bool failed = hasFailed(result);
  if (failed)
    Entering(open_).takeBack();
  else
    for (Open& each : open_) (*each.use).counts().leave();
  HoldPoint* hold = nullptr;
  for (Open& each : open_) {
    if (!each.watch) continue;
    hold = each.watch->hooks.hold;
    CallRecorder* const recorder = each.watch->hooks.calls;
    if (!recorder) continue;
    each.record.leave = now;
    if (failed)
      recorder->fail(each.flight, each.record, each.watch->place);
    else
      recorder->leave(each.flight, each.record);
  }
  noteLaunched();
  open_.clear();
  if (hold) hold->leaveCall();
}

void WatchedCalls::noteLaunched() {
  for (auto each = open_.begin(); each != open_.end(); ++each) {
    const bool noted = std::any_of(open_.begin(), each,
                                   [&](const Open& other) { return other.watch && other.stream == each->stream; });
    if (each->watch && !noted) each->watch->launched->note(each->stream);
  }
}

void WatchedCalls::groupEnds() {
  if (depth_ == 1) enter();
}

void WatchedCalls::groupEnded(ncclResult_t result) {
  if (depth_ > 0 && --depth_ == 0) leave(result);
}

void WatchedCalls::groupDropped() {
  if (depth_ > 0 && --depth_ == 0) open_.clear();
}

void WatchedCalls::forget() {
  depth_ = 0;
  // Their slots are forgotten too; nothing is to be counted down there.
  new std::vector<Open>(std::move(open_));
}

}  // namespace falcon::preload
