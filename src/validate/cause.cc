#include "validate/cause.h"

#include <cmath>

#include "base/format.h"
#include "base/median.h"

namespace falcon::validate {
namespace {

// A tenth of the time more than the peers: less than that makes nobody 1.2 times slower.
constexpr double clearlyMore = 0.1;
constexpr double nearlyAll = 0.9;  // of the test's time
constexpr double atTheLimit = 0.97;

constexpr double CauseEvidence::*figures[] = {
    &CauseEvidence::computeSlowness, &CauseEvidence::memorySlowness,   &CauseEvidence::throttled,
    &CauseEvidence::waited,          &CauseEvidence::stolen,           &CauseEvidence::ran,
    &CauseEvidence::processors,      &CauseEvidence::thermalThrottles, &CauseEvidence::power};

double orZero(double value) {
  return std::isnan(value) ? 0 : value;
}

double above(double value, double usual) {
  return orZero(value) - orZero(usual);
}

int percent(double share) {
  return static_cast<int>(std::lround(100 * std::min(1.0, share)));
}

}  // namespace

const char* nameOf(Cause cause) {
  switch (cause) {
    case Cause::unexplained:
      return "not explained";
    case Cause::quota:
      return "CPU quota";
    case Cause::contention:
      return "CPU contention";
    case Cause::thermal:
      return "thermal throttling";
    case Cause::powerCap:
      return "power cap";
    case Cause::memory:
      return "memory bandwidth";
    case Cause::hardware:
      return "unknown hardware";
  }
  return "?";
}

CauseEvidence usualOf(const std::vector<CauseEvidence>& all) {
  CauseEvidence usual;
  for (const auto figure : figures) {
    std::vector<double> values;
    for (const CauseEvidence& one : all)
      if (!std::isnan(one.*figure)) values.push_back(one.*figure);
    usual.*figure = median(values);
  }
  return usual;
}

Diagnosis diagnose(const CauseEvidence& rank, const CauseEvidence& usual) {
  if (above(rank.throttled, usual.throttled) > clearlyMore)
    return {Cause::quota, fmt::format("held back by its cgroup's quota for {} % of the time, its peers for {} %",
                                      percent(rank.throttled), percent(orZero(usual.throttled)))};
  if (above(rank.stolen, usual.stolen) > clearlyMore)
    return {Cause::contention,
            fmt::format("the hypervisor gave {} % of its processors' time to others", percent(rank.stolen))};
  if (above(rank.waited, usual.waited) > clearlyMore) {
    std::string text = fmt::format("it was ready but had no core for {} % of the time, its peers for {} %",
                                   percent(rank.waited), percent(orZero(usual.waited)));
    if (rank.processors < usual.processors)
      text += fmt::format("; it may use {} cores, its peers {}", rank.processors, usual.processors);
    return {Cause::contention, text};
  }
  if (above(rank.thermalThrottles, usual.thermalThrottles) > 0)
    return {Cause::thermal, fmt::format("its cores were too hot {} times in the test", rank.thermalThrottles)};
  if (rank.power >= atTheLimit && !(usual.power >= atTheLimit))
    return {Cause::powerCap, fmt::format("its package drew {} % of the power it may draw", percent(rank.power))};
  // Products of small matrices stay in the cache: slow memory shows in the copies alone, or much more there.
  const double compute = std::isnan(rank.computeSlowness) ? 1 : rank.computeSlowness;
  if (rank.memorySlowness > slowFactor && (compute <= slowFactor || rank.memorySlowness > slowFactor * compute))
    return {Cause::memory, fmt::format("it moves memory {:.2f} times slower than its peers", rank.memorySlowness)};
  if (rank.ran >= nearlyAll && compute > slowFactor)
    return {Cause::hardware, fmt::format("it ran for {} % of the time and nothing held it back", percent(rank.ran))};
  return {};
}

}  // namespace falcon::validate
