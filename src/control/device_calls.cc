#include "control/device_calls.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace falcon::control {
namespace {

bool earlier(const gpu::DeviceTime& one, const gpu::DeviceTime& other) {
  return std::tie(one.communicator, one.entered) < std::tie(other.communicator, other.entered);
}

/// On all of its streams. False: it was not timed.
bool putOnDevice(TimedCall& call, const std::vector<gpu::DeviceTime>& times) {
  const Nanoseconds enter{call.enter}, leave{call.enter + call.duration};
  Nanoseconds reached = Nanoseconds::max(), done = Nanoseconds::min();
  for (auto each = std::lower_bound(times.begin(), times.end(), gpu::DeviceTime{call.communicator, enter}, earlier);
       each != times.end() && each->communicator == call.communicator && each->entered <= leave; ++each) {
    reached = std::min(reached, each->reached);
    done = std::max(done, each->done);
  }
  if (done < reached) return false;
  call.enter = reached.count();
  call.duration = (done - reached).count();
  return true;
}

}  // namespace

CallTimes asOnDevice(std::vector<TimedCall> calls, const std::set<CommunicatorId>& vendors,
                     std::vector<gpu::DeviceTime> times) {
  const auto isVendors = [&](const TimedCall& call) { return vendors.contains(call.communicator); };
  if (!std::ranges::all_of(calls, isVendors)) std::erase_if(times, [](const auto& each) { return !each.onHostsClock; });
  const bool onHostsClock = std::ranges::all_of(times, &gpu::DeviceTime::onHostsClock);
  std::sort(times.begin(), times.end(), earlier);
  std::erase_if(calls, [&](TimedCall& call) { return isVendors(call) && !putOnDevice(call, times); });
  std::stable_sort(calls.begin(), calls.end(),
                   [](const auto& one, const auto& other) { return one.enter < other.enter; });
  return {std::move(calls), onHostsClock};
}

}  // namespace falcon::control
