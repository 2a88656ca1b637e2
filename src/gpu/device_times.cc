#include "gpu/device_times.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "base/format.h"
#include "base/log.h"

namespace falcon::gpu {
namespace {

// An event on an idle stream is reached at once, as a rule.
constexpr int attempts = 5;
constexpr Nanoseconds patience = 60ms;
constexpr Nanoseconds goodEnough = 30us;

}  // namespace

// Events that are left are the driver's to free: at the end of a process it may be gone already.
DeviceTimes::~DeviceTimes() = default;

const StreamEvents* DeviceTimes::events() {
  std::call_once(looked_, [this] { driver_ = findDriver_(); });
  return driver_ ? driver_->streamEvents() : nullptr;
}

void* DeviceTimes::spare() {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) return nullptr;
  void* const event = spare_.back();
  spare_.pop_back();
  return event;
}

void DeviceTimes::before(TimedLaunch& launch, void* stream, CommunicatorId communicator) noexcept try {
  if (!enabled()) return;
  const auto same = [&](const TimedLaunch::OnStream& each) { return each.stream == stream; };
  if (const auto known = std::ranges::find_if(launch.streams, same); known != launch.streams.end()) {
    auto& all = known->communicators;
    if (std::ranges::find(all, communicator) == all.end()) all.push_back(communicator);
    return;
  }
  const StreamEvents* const events = this->events();
  if (!events) return;
  launch.streams.push_back({stream, nullptr, {communicator}});
  launch.streams.back().before = events->record(stream, spare(), StreamEvents::Kind::timed);
} catch (const std::exception&) {
  // No memory: it is not timed.
}

void DeviceTimes::behind(TimedLaunch& launch, Nanoseconds entered) noexcept try {
  if (launch.streams.empty()) return;
  const StreamEvents* const events = this->events();
  for (TimedLaunch::OnStream& each : launch.streams) {
    if (!each.before) continue;
    void* const behind = events->record(each.stream, spare(), StreamEvents::Kind::timed);
    if (!behind) {
      events->free(each.before);
      continue;
    }
    Open open{events->contextOf(each.stream), each.before, behind, std::move(each.communicators), entered};
    const std::lock_guard lock(mutex_);
    open_.push_back(std::move(open));
    keepNewest();
  }
  launch.streams.clear();
} catch (const std::exception&) {
  launch.streams.clear();
}

// Calls are kept likewise (control/call_window.h), so that those of a long profile are timed that are told.
void DeviceTimes::keepNewest() {
  for (; open_.size() > mostOpen; open_.pop_front())
    spare_.insert(spare_.end(), {open_.front().before, open_.front().behind});
}

std::deque<DeviceTimes::Open> DeviceTimes::takeOpen() {
  const std::lock_guard lock(mutex_);
  return std::exchange(open_, {});
}

void DeviceTimes::putBack(std::deque<Open> open) {
  const std::lock_guard lock(mutex_);
  open_.insert(open_.begin(), std::make_move_iterator(open.begin()), std::make_move_iterator(open.end()));
  keepNewest();
}

std::size_t DeviceTimes::underWay() {
  std::deque<Open> open = takeOpen();
  const auto count = std::ranges::count_if(open, [this](const Open& each) { return !isDone(each); });
  putBack(std::move(open));
  return static_cast<std::size_t>(count);
}

bool DeviceTimes::isDone(const Open& launch) const {
  const StreamEvents& events = *driver_->streamEvents();
  return events.isDone(launch.behind) && events.isDone(launch.before);
}

// The device came to each event of ours at some time between when it was asked for and when it was seen to be done, and
// how far apart they are on the device's clock is known: together they tell more than the best of them. Where another
// process has the device meanwhile, or others this thread's processor, each alone may be off by milliseconds.
std::optional<DeviceTimes::Reference> DeviceTimes::referenceIn(void* context, Nanoseconds mostUncertain) {
  const StreamEvents& events = *driver_->streamEvents();
  const auto [stream, isNew] = streams_.try_emplace(context);
  if (isNew) stream->second = events.makeStream(context);
  if (!stream->second) return std::nullopt;
  void* first = nullptr;
  Nanoseconds earliest = Nanoseconds::min(), latest = Nanoseconds::max();  // when the device came to the first event
  const auto uncertain = [&] { return first ? latest / 2 - earliest / 2 : Nanoseconds::max(); };
  const Nanoseconds since = clock_.now();
  for (int attempt = 0; uncertain() > goodEnough && (attempt < attempts || uncertain() > mostUncertain); ++attempt) {
    const Nanoseconds asked = clock_.now();
    if (asked - since > patience) break;
    void* const event = events.record(stream->second, nullptr, StreamEvents::Kind::timed);
    if (!event) break;
    while (!events.isDone(event) && clock_.now() - since < patience) std::this_thread::yield();
    const Nanoseconds seen = clock_.now();
    const auto behindFirst = !events.isDone(event) ? std::nullopt : first ? events.between(first, event) : 0ns;
    if (behindFirst) {
      earliest = std::max(earliest, asked - *behindFirst);
      latest = std::min(latest, seen - *behindFirst);
      if (!first) first = event;
    }
    if (first != event) events.free(event);
    // Not in step with the shares of time that the other process gets.
    if (uncertain() > mostUncertain) clock_.sleep(attempt * 1370us % 5ms);
  }
  if (uncertain() <= mostUncertain) return Reference{first, earliest + uncertain()};
  log::info("the device's clock could not be read to {} us, but to {}", mostUncertain / 1us,
            first ? fmt::format("{} us", uncertain() / 1us) : "nothing");
  if (!first) return std::nullopt;
  return Reference{first, earliest + uncertain(), false};
}

std::vector<DeviceTime> DeviceTimes::take(Nanoseconds mostUncertain) {
  std::deque<Open> open = takeOpen();
  if (open.empty()) return {};
  const auto last = std::stable_partition(open.begin(), open.end(), [this](const Open& each) { return !isDone(each); });
  const std::vector<Open> done(std::make_move_iterator(last), std::make_move_iterator(open.end()));
  open.erase(last, open.end());
  putBack(std::move(open));
  const StreamEvents& events = *driver_->streamEvents();
  std::map<void*, std::optional<Reference>> references;
  for (const Open& each : done)
    if (!references.contains(each.context)) references[each.context] = referenceIn(each.context, mostUncertain);
  std::vector<DeviceTime> times;
  for (const Open& each : done) {
    const auto& reference = references.at(each.context);
    if (!reference) continue;
    const auto reached = events.between(each.before, reference->event);
    const auto ended = events.between(each.behind, reference->event);
    if (!reached || !ended) continue;
    for (const CommunicatorId communicator : each.communicators)
      times.push_back(
          {communicator, each.entered, reference->at - *reached, reference->at - *ended, reference->isExact});
  }
  for (const auto& [context, reference] : references)
    if (reference) events.free(reference->event);
  const std::lock_guard lock(mutex_);
  for (const Open& each : done) spare_.insert(spare_.end(), {each.before, each.behind});
  return times;
}

}  // namespace falcon::gpu
