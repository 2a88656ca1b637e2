#include "control/profiled_times.h"

#include <algorithm>

namespace falcon::control {

std::optional<ProfiledTimes> profiledTimes(const std::vector<instrument::TimelineCall>& calls,
                                           double iterationSeconds) {
  constexpr int fewestIterations = 2;
  if (calls.empty() || !(iterationSeconds > 0)) return std::nullopt;
  Nanoseconds end{0};
  for (const auto& call : calls) end = std::max(end, call.leave);
  const auto iterations = static_cast<int>(seconds(end - calls.front().enter) / iterationSeconds);
  if (iterations < fewestIterations) return std::nullopt;
  const Nanoseconds start = end - fromSeconds(iterations * iterationSeconds);
  ProfiledTimes times;
  Nanoseconds covered = start;  // calls of several streams overlap
  double inAny = 0;
  for (const auto& call : calls) {
    const Nanoseconds enter = std::max(call.enter, start);
    if (call.leave <= enter) continue;
    times.inCalls[call.communicator] += seconds(call.leave - enter);
    if (call.enter >= start) ++times.calls;
    if (call.leave <= covered) continue;
    inAny += seconds(call.leave - std::max(enter, covered));
    covered = call.leave;
  }
  times.outside = std::max(0.0, iterationSeconds - inAny / iterations);
  times.calls /= iterations;
  for (auto& [communicator, time] : times.inCalls) time /= iterations;
  return times;
}

}  // namespace falcon::control
