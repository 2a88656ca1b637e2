#include "preload/watched_calls.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "instrument/call_labels.h"

namespace falcon::preload {
namespace {

bool hasFailed(ncclResult_t result) {
  return result != ncclSuccess && result != ncclInProgress;
}

void fillIn(CallRecord& call, const front::WatchedCall& given) {
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

class WatchedCalls::Event final : public CallEvent {
 public:
  explicit Event(WatchedCalls& calls) : calls_(calls) {}
  void enter() noexcept override { calls_.entered_->enter(); }
  /// It is held from now on. Of a group the vendor has all calls already, so it has to be told what becomes of them
  /// before their communicators go.
  void takeBack() noexcept override {
    calls_.entered_->takeBack();
    if (!calls_.inGroup() || std::exchange(calls_.keepsThem_, true)) return;
    for (const Open& each : calls_.open_) (*each.use).groupIsHeld();
  }
  bool isCalledOff() const noexcept override { return calls_.entered_->isCalledOff(); }

 private:
  WatchedCalls& calls_;
};

WatchedCalls& WatchedCalls::ofThisThread() {
  // On the heap: every thread of the process has what is thread_local, called or not.
  thread_local const auto calls = std::make_unique<WatchedCalls>();
  return *calls;
}

WatchedCalls::Begun WatchedCalls::begin(Directory::Use use, const front::WatchedCall& given) {
  if (!use || !isKnown(given, *use)) {
    hasOthers_ = true;
    return Begun::untold;
  }
  add(std::move(use), given);
  if (inGroup()) return Begun::untold;
  hasOthers_ = false;
  enter();
  if (!open_.back().isCalledOff()) [[likely]]
    return Begun::told;
  leave(ncclInvalidUsage);
  return Begun::refused;
}

void WatchedCalls::add(Directory::Use use, const front::WatchedCall& given) {
  Open& open = open_.emplace_back();  // filled in its place: a copy takes a tenth of a call
  open.use = std::move(use);
  fillIn(open.logged.record, given);
  open.stream = given.stream;
  open.watch = (*open.use).watch();
  if (given.config) [[unlikely]]
    open.labels = labelsOf(given);
  if (open.watch) hold_ = open.watch->hooks.hold;  // one process has one
  launches_ = launches_ || spins(open);
}

void WatchedCalls::clear() {
  open_.clear();
  hold_ = nullptr;
  launches_ = false;
}

void WatchedCalls::enter() {
  if (open_.empty()) return;
  const Nanoseconds now = clock_.now();
  const bool grouped = inGroup();
  entered_.emplace(open_);
  for (Open& each : open_) {
    each.logged.record.sequence = each.counts().next(each.counted());
    entered_->enterNext();
  }
  if (hold_) {
    Event event(*this);
    hold_->passEvent(event);
  }
  if (keepsThem_) [[unlikely]] {
    dropped_ = entered_->isCalledOff();
    if (dropped_) return;
    letThemEnd();
  }
  for (Open& each : open_) {
    if (!each.watch || !each.watch->hooks.calls) continue;
    CallRecord& record = each.logged.record;
    record.communicator = each.watch->id;
    record.rank = (*each.use).rank();
    record.grouped = grouped;
    record.enter = now;
    each.logged.enter(thread_, *each.watch->hooks.calls, each.watch->place, each.labels ? &*each.labels : nullptr);
  }
  enteredAt_ = now;
  nextTold_ = 0;
  if (control::VendorEvents* const events = control::VendorEvents::asked()) [[unlikely]]
    chooseEvents(*events);
  if (launches_) aboutToLaunch();
}

/// All that are watched are of one job.
void WatchedCalls::chooseEvents(control::VendorEvents& events) {
  areHanded();
  for (const Open& each : open_)
    if (each.watch) return events.beforeCalls(each.watch->hooks.transfers, enteredAt_);
}

std::optional<control::HandedCalls::Named> WatchedCalls::find(const control::ToldCall& told) {
  if (!entered_ || dropped_) return std::nullopt;
  const auto factsOf = [this](int at) {
    const Open& each = open_[static_cast<std::size_t>(at)];
    return control::HandedCall::of(each.counted(), each.watch ? each.watch->id : 0, (*each.use).rank(),
                                   (*each.use).size(), each.told);
  };
  const int count = static_cast<int>(open_.size());
  const int found = control::placeOf(told, count, nextTold_, hasOthers_, factsOf);
  if (found < 0) return std::nullopt;
  Open& call = open_[static_cast<std::size_t>(found)];
  call.told = true;
  nextTold_ = (found + 1) % count;
  return Named{call.watch->id, call.counted().sequence};
}

void WatchedCalls::leave(ncclResult_t result) {
  if (open_.empty()) return;
  if (!hasFailed(result)) {
    const Nanoseconds now = clock_.now();
    entered_->leave();
    for (Open& each : open_) each.logged.leave(now);
  }
  entered_.reset();
  if (!std::exchange(dropped_, false) && launches_) noteLaunched();
  if (hold_) hold_->leaveCall();
  letThemEnd();
  clear();
}

/// Who is alone in a communicator waits for nobody there: that is neither timed nor noted.
bool WatchedCalls::spins(const Open& open) {
  return open.watch && (*open.use).size() > 1;
}

void WatchedCalls::aboutToLaunch() {
  for (const Open& each : open_)
    if (spins(each)) each.watch->launched->times().before(launch_, each.stream, each.watch->id);
}

void WatchedCalls::noteLaunched() {
  for (auto each = open_.begin(); each != open_.end(); ++each) {
    if (!spins(*each)) continue;
    each->watch->launched->times().behind(launch_, enteredAt_);
    const auto noted = [&](const Open& other) { return spins(other) && other.stream == each->stream; };
    if (!std::any_of(open_.begin(), each, noted)) each->watch->launched->note(each->stream);
  }
}

void WatchedCalls::letThemEnd() {
  if (!std::exchange(keepsThem_, false)) return;
  for (const Open& each : open_) (*each.use).groupIsOver();
}

bool WatchedCalls::groupEnds() {
  if (depth_ == 1) enter();
  return dropped_;
}

void WatchedCalls::groupEnded(ncclResult_t result) {
  if (depth_ > 0 && --depth_ == 0) leave(result);
}

void WatchedCalls::groupDropped() {
  if (depth_ > 0 && --depth_ == 0) clear();
}

void WatchedCalls::forget() {
  depth_ = 0;
  keepsThem_ = dropped_ = hasOthers_ = false;
  if (entered_) entered_->forget();
  entered_.reset();
  // Their slots are forgotten too; nothing is to be counted down there.
  new (&open_) std::vector<Open>;
  hold_ = nullptr;
  launches_ = false;
}

}  // namespace falcon::preload
