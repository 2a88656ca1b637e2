#include "profiler/observer.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/contained.h"
#include "base/log.h"
#include "plugin/profiler/event_names.h"

namespace falcon::profiler {

using plugin::EventState;

namespace {

constexpr std::uint32_t callsAndGroups = plugin::groupApiEvent | plugin::collectiveApiEvent | plugin::messageApiEvent |
                                         plugin::groupEvent | callEvents | plugin::copyEngineEvent;

Nanoseconds now() {
  return SystemClock::instance().now();
}

bool isCallOrGroup(std::uint64_t type) {
  return (type & callsAndGroups) != 0;
}

/// Of a step: whether its bytes are on their way or in use, and nobody is waited for.
bool moves(EventState state) {
  return state == EventState::sendWait || state == EventState::receiveFlushWait || state == EventState::receiveGpuWait;
}
bool waitsForPeer(EventState state) {
  return state == EventState::sendPeerWait || state == EventState::receiveWait;
}

}  // namespace

void DeviceClock::note(Nanoseconds device, Nanoseconds now) {
  const std::int64_t offset = (now - device).count();
  std::int64_t known = offset_.load(std::memory_order_relaxed);
  while (offset < known && !offset_.compare_exchange_weak(known, offset, std::memory_order_relaxed)) {
  }
}

Observer::Observer(Outlet* outlet, plugin::ProfilerDirectory& chained, std::uint32_t wanted)
    : outlet_(outlet), chained_(chained), wanted_(wanted), process_(getpid()) {}

plugin::ResultCode Observer::init(const plugin::ProfiledCommunicator& communicator, void** context, int* mask) {
  auto own = std::make_unique<Communicator>();
  own->facts = communicator;
  own->name = communicator.name ? communicator.name : "";
  own->facts.name = communicator.name ? own->name.c_str() : nullptr;
  own->chained = chained_.open(own->facts);
  if (outlet_) own->place = outlet_->joined(own->facts);
  own->mask = mask;
  std::unique_lock lock(mutex_);
  if (!calls_ && (outlet_ || own->chained)) {
    calls_ = std::make_unique<Slots<Event, callSlots>>();
    pieces_ = std::make_unique<Slots<Event, pieceSlots>>();
  }
  Context* const place = freeContext();
  *context = place;
  if (!place) {  // NCCL tells its events, and nobody listens
    lock.unlock();
    if (outlet_) outlet_->left(own->facts);
    return plugin::success;
  }
  place->store(own.get(), std::memory_order_release);
  communicators_.emplace(place, std::move(own));
  lock.unlock();
  refreshMask();
  return plugin::success;
}

plugin::ResultCode Observer::finalize(void* context) {
  std::unique_ptr<Communicator> own;
  {
    const std::lock_guard lock(mutex_);
    const auto known = communicators_.find(context);
    if (known == communicators_.end()) return plugin::success;
    static_cast<Context*>(context)->store(nullptr, std::memory_order_release);
    own = std::move(known->second);
    communicators_.erase(known);
  }
  if (outlet_) outlet_->left(own->facts);
  return plugin::success;
}

void Observer::want(std::uint32_t events) {
  wanted_.store(events, std::memory_order_relaxed);
  refreshMask();
}

void Observer::refreshMask() {
  const std::lock_guard lock(mutex_);
  std::uint32_t all = wanted_.load(std::memory_order_relaxed);
  for (const auto& [context, communicator] : communicators_)
    if (communicator->chained) all |= communicator->chained->mask();
  // Two libraries of NCCL's in a process have a mask each.
  for (const auto& [context, communicator] : communicators_)
    std::atomic_ref(*communicator->mask).store(static_cast<int>(all), std::memory_order_relaxed);
}

Observer::Event* Observer::known(void* handle) const {
  if (!calls_ || (!calls_->has(handle) && !pieces_->has(handle))) return nullptr;
  return static_cast<Event*>(handle);
}

Observer::Context* Observer::freeContext() {
  for (std::size_t tries = 0; tries < contextSlots; ++tries) {
    Context& place = contexts_[nextContext_++ % contextSlots];
    if (!place.load(std::memory_order_relaxed)) return &place;
  }
  return nullptr;
}

Observer::Communicator* Observer::communicatorAt(void* context) const {
  const auto at = reinterpret_cast<std::uintptr_t>(context);
  const auto first = reinterpret_cast<std::uintptr_t>(contexts_.data());
  if (at < first || at >= first + sizeof contexts_ || (at - first) % sizeof(Context) != 0) return nullptr;
  return static_cast<Context*>(context)->load(std::memory_order_acquire);
}

/// The context of another process may have the same address as one of ours, where both were forked from one: a proxy
/// operation names its process, and what belongs to an operation goes by that.
Observer::Communicator* Observer::communicatorOf(void* context, const plugin::Event& event, const Event* parent) const {
  if (event.type == plugin::proxyOpEvent && event.proxyOp.process != process_) return nullptr;
  const bool isPart = event.type == plugin::proxyStepEvent || event.type == plugin::netPluginEvent;
  return isPart && parent ? parent->communicator : communicatorAt(context);
}

/// A proxy operation's parent may be an address of another process.
Observer::Event* Observer::parentOf(const plugin::Event& event) const {
  if (event.type == plugin::proxyOpEvent && event.proxyOp.process != process_) return nullptr;
  return known(event.parent);
}

void Observer::give(Event* event) {
  if (calls_->has(event))
    calls_->give(event);
  else
    pieces_->give(event);
}

plugin::ResultCode Observer::start(void* context, void** handle, const plugin::Event& event) noexcept {
  *handle = nullptr;
  if (!calls_) return plugin::success;
  Event* own = isCallOrGroup(event.type) ? calls_->take() : pieces_->take();
  if (!own) {
    missed_.fetch_add(1, std::memory_order_relaxed);
    return plugin::success;
  }
  own->type = event.type;
  own->parent = parentOf(event);
  own->communicator = communicatorOf(context, event, own->parent);
  own->since = now();
  tellChained(*own, event);
  if (outlet_) contained([&] { observe(*own, event); }, [](const char*) {});
  *handle = own;
  return plugin::success;
}

void Observer::tellChained(Event& own, const plugin::Event& event) noexcept {
  const auto* session = own.communicator ? own.communicator->chained.get() : nullptr;
  if (!session || (session->mask() & plugin::bitsThatTell(event.type)) == 0) return;
  const auto its = [&](void* handle) -> void* {
    const Event* of = known(handle);
    return of ? of->chained : nullptr;
  };
  plugin::Event forwarded = event;
  // What is of another process stays as it is: a plugin looks at the process first.
  if (own.parent || event.type != plugin::proxyOpEvent || event.proxyOp.process == process_)
    forwarded.parent = its(event.parent);
  if (event.type == plugin::collectiveEvent) forwarded.collective.group = its(event.collective.group);
  if (event.type == plugin::messageEvent) forwarded.message.group = its(event.message.group);
  own.chained = session->start(forwarded);
}

void Observer::observe(Event& own, const plugin::Event& event) {
  switch (event.type) {
    case plugin::collectiveEvent:
    case plugin::messageEvent:
      return enterCall(own, event);
    case plugin::proxyOpEvent:
      return beginTiming(own, event.proxyOp.channel, event.proxyOp.peer, event.proxyOp.sends != 0);
    case plugin::kernelChannelEvent:
      beginTiming(own, event.kernelChannel.channel, own.communicator ? own.communicator->facts.rank : -1, false);
      deviceClock_.note(Nanoseconds(event.kernelChannel.timer), own.since);
      own.timing.start = Nanoseconds(event.kernelChannel.timer);  // of the GPU's clock, until it ends
      return;
    case plugin::kernelPhaseEvent:
      own.since = Nanoseconds(event.kernelPhase.timer);
      own.observed = event.kernelPhase.phase != plugin::KernelPhase::compute;  // the others wait for the peers
      return;
    case plugin::proxyStepEvent:
      own.observed = own.parent && own.parent->observed;
      if (own.observed && own.parent->timing.start == 0ns) own.parent->timing.start = own.since;
      return;
    default:
      return;
  }
}

void Observer::enterCall(Event& own, const plugin::Event& event) {
  if (!own.communicator) return;
  Communicator& communicator = *own.communicator;
  const bool message = event.type == plugin::messageEvent;
  const char* function = message ? event.message.function : event.collective.function;
  const char* type = message ? event.message.type : event.collective.type;
  const auto operation = plugin::operationOf(function ? function : "");
  if (!operation) return;  // one that the call log has no word for
  CallRecord& call = own.call;
  call.communicator = communicator.facts.id;
  call.operation = *operation;
  call.type = plugin::dataTypeOf(type ? type : "").value_or(DataType::u8);
  call.rank = communicator.facts.rank;
  call.count = message ? event.message.count : event.collective.count;
  call.enter = own.since;
  if (message) {
    call.peer = event.message.peer;
    const std::lock_guard lock(communicator.mutex);
    call.sequence = communicator.messages[{*operation, call.peer}]++;
  } else {
    if (hasPeer(*operation)) call.peer = event.collective.root;
    call.sequence = communicator.collectives.fetch_add(1, std::memory_order_relaxed);
  }
  const auto flight = outlet_->enter(call, communicator.place);
  own.observed = flight.has_value();
  if (!flight) return;
  own.flight = *flight;
  const std::uint64_t tag = message ? event.message.tag : event.collective.tag;
  if (tag != 0) outlet_->label(LabelledCall::of(call, {.tag = tag}));
}

void Observer::beginTiming(Event& own, int channel, Rank peer, bool sending) {
  if (!own.communicator || !own.parent || !own.parent->observed) return;
  own.timing.communicator = own.parent->call.communicator;
  own.timing.sequence = own.parent->call.sequence;
  own.timing.channel = channel;
  own.timing.peer = peer;
  own.timing.sending = sending;
  own.observed = true;
}

plugin::ResultCode Observer::state(void* handle, EventState state, plugin::StateArguments* arguments) noexcept {
  Event* own = known(handle);
  if (!own) return plugin::success;
  if (own->chained)
    own->communicator->chained->state(own->chained, state, arguments ? *arguments : plugin::StateArguments{});
  if (!own->observed) return plugin::success;
  if (own->type == plugin::proxyStepEvent)
    changeStep(*own, state, arguments ? arguments->proxyStep.transferred : 0, now());
  if (own->type == plugin::kernelChannelEvent && state == EventState::kernelChannelStop && arguments) {
    deviceClock_.note(Nanoseconds(arguments->kernelChannel.timer), now());
    own->timing.stop = Nanoseconds(arguments->kernelChannel.timer);
  }
  if (own->type == plugin::kernelPhaseEvent && state == EventState::kernelPhaseStop && arguments && own->parent)
    own->parent->timing.waiting += std::max(Nanoseconds(arguments->kernelChannel.timer) - own->since, Nanoseconds(0));
  return plugin::success;
}

/// Steps of an operation are under way at the same time, and what one of them waits for while another moves holds
/// nobody up. The time since the last change belongs to what there was until now.
void Observer::count(Event& operation, Nanoseconds now) {
  const Nanoseconds passed = now - std::exchange(operation.counted, now);
  if (operation.moving > 0)
    operation.timing.moving += passed;
  else if (operation.waiting > 0)
    operation.timing.waiting += passed;
}

void Observer::changeStep(Event& step, EventState state, std::uint64_t bytes, Nanoseconds now) {
  Event& operation = *step.parent;
  count(operation, now);
  operation.moving += static_cast<int>(moves(state)) - static_cast<int>(moves(step.state));
  operation.waiting += static_cast<int>(waitsForPeer(state)) - static_cast<int>(waitsForPeer(step.state));
  // NCCL says with every state how long the transfer is, as far as it knows: before it has come, that is the last
  // one's.
  if (moves(state) && bytes > 0) step.bytes = bytes;
  step.state = state;
}

void Observer::endStep(Event& step, Nanoseconds now) {
  changeStep(step, EventState::proxyOpInProgress, 0, now);
  step.parent->timing.bytes += step.bytes;
  step.parent->timing.stop = now;
}

plugin::ResultCode Observer::stop(void* handle) noexcept {
  Event* own = known(handle);
  if (!own) return plugin::success;
  if (own->chained) own->communicator->chained->stop(own->chained);
  if (own->observed) endObserved(*own);
  give(own);
  return plugin::success;
}

void Observer::endObserved(Event& own) noexcept {
  switch (own.type) {
    case plugin::collectiveEvent:
    case plugin::messageEvent:
      own.call.leave = now();
      return outlet_->leave(own.flight, own.call);
    case plugin::proxyStepEvent:
      return endStep(own, now());
    case plugin::proxyOpEvent:
      if (own.timing.stop > 0ns) outlet_->transfer(own.timing);
      return;
    case plugin::kernelChannelEvent: {
      if (own.timing.stop <= 0ns) return;
      TransferTiming timing = own.timing;
      timing.start = deviceClock_.toHost(timing.start);
      timing.stop = deviceClock_.toHost(timing.stop);
      timing.moving = std::max(timing.stop - timing.start - timing.waiting, Nanoseconds(0));
      return outlet_->ownWork(timing);
    }
    default:
      return;
  }
}

}  // namespace falcon::profiler
