#include "inject/outcome.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/format.h"
#include "json_text.h"

namespace falcon::tools {
namespace {

const char* nameOf(InjectionKind kind) {
  switch (kind) {
    case InjectionKind::slowRank:
      return "slow-rank";
    case InjectionKind::slowLink:
      return "slow-link";
    case InjectionKind::hang:
      return "hang";
    case InjectionKind::memoryHog:
      break;
  }
  return "memory-hog";
}

// Acknowledgements of the opposite direction pass the class as well: they are below 100 bytes a packet. A direction
// that the job uses carries segments of more than a thousand.
// The job's own transport counts data only.
bool carriedData(const LinkTraffic& traffic) {
  return traffic.held > 0 && traffic.bytes > 200 * traffic.packets;
}

// A busy machine moves the use of an undisturbed rank by some percent.
constexpr double clearlyLess = 0.95;

std::string describe(const char* direction, Link link, const LinkTraffic& traffic) {
  return fmt::format("{} {} -> {}: {} bytes in {} packets, held {} times", direction, link.from, link.to, traffic.bytes,
                     traffic.packets, traffic.held);
}

}  // namespace

Moment momentNow() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return {seconds(SystemClock::instance().now()), std::chrono::duration<double>(wall).count()};
}

bool effective(const Outcome& outcome) {
  switch (outcome.kind) {
    case InjectionKind::slowRank:
      return outcome.throttledPeriods + outcome.stops > 0 && outcome.coresDuring < clearlyLess * outcome.coresBefore;
    case InjectionKind::slowLink:
      // A ring uses one direction: the other may carry acknowledgements only, and is slow all the same.
      return carriedData(outcome.there) || (outcome.bothWays && carriedData(outcome.back));
    case InjectionKind::hang:
      return outcome.stops > 0;
    case InjectionKind::memoryHog:
      break;
  }
  return outcome.hogBytes > 0;
}

namespace {

std::string explainKind(const Outcome& outcome) {
  const char* verdict = effective(outcome) ? "slowed" : "NOT slowed";
  switch (outcome.kind) {
    case InjectionKind::slowRank:
      return fmt::format(
          "rank {} was {}: it used {:.3f} cores before and {:.3f} during (quota {:.3f}, throttled in {} periods, "
          "stopped {} times)",
          outcome.rank, verdict, outcome.coresBefore, outcome.coresDuring, outcome.quota, outcome.throttledPeriods,
          outcome.stops);
    case InjectionKind::slowLink: {
      const Link opposite{outcome.link.to, outcome.link.from};
      std::string text = fmt::format("link {} {} {} was {} to {:.0f} bit/s{}; {}", outcome.link.from,
                                     outcome.bothWays ? "<->" : "->", outcome.link.to, verdict, outcome.bitsPerSecond,
                                     outcome.insideTransport ? " by the job's own transport" : "",
                                     describe("", outcome.link, outcome.there));
      if (outcome.bothWays) text += "; " + describe("", opposite, outcome.back);
      if (!effective(outcome)) text += "; does the job send data over this link?";
      return text;
    }
    case InjectionKind::hang:
      return fmt::format("rank {} was {}: it used {:.3f} cores before and {:.3f} during", outcome.rank,
                         effective(outcome) ? "hung" : "NOT hung", outcome.coresBefore, outcome.coresDuring);
    case InjectionKind::memoryHog:
      break;
  }
  return fmt::format(
      "a hog streamed {} bytes through memory beside rank {}, which used {:.3f} cores before and {:.3f} during",
      outcome.hogBytes, outcome.rank, outcome.coresBefore, outcome.coresDuring);
}

}  // namespace

std::string explain(const Outcome& outcome) {
  std::string text = explainKind(outcome);
  if (outcome.iterationBefore <= 0) return text;
  text += fmt::format("; the job's iterations took {:.3f} s before, and {} ended meanwhile", outcome.iterationBefore,
                      outcome.iterationsEnded == 0 ? "none" : std::to_string(outcome.iterationsEnded));
  if (outcome.iterationsEnded > 0) text += fmt::format(", the last after {:.3f} s", outcome.iterationDuring);
  return text;
}

std::string toJson(const Outcome& outcome) {
  nlohmann::ordered_json text{{"kind", nameOf(outcome.kind)}};
  if (outcome.kind == InjectionKind::slowLink) {
    text["from"] = outcome.link.from;
    text["to"] = outcome.link.to;
    text["both_ways"] = outcome.bothWays;
    text["bits_per_second"] = outcome.bitsPerSecond;
    text["bytes"] = outcome.there.bytes;
    text["packets"] = outcome.there.packets;
    text["held"] = outcome.there.held;
    text["bytes_back"] = outcome.back.bytes;
  } else {
    text["rank"] = outcome.rank;
    text["cores_before"] = outcome.coresBefore;
    text["cores_during"] = outcome.coresDuring;
  }
  if (outcome.kind == InjectionKind::slowRank) {
    text["quota"] = outcome.quota;
    text["throttled_periods"] = outcome.throttledPeriods;
    text["stops"] = outcome.stops;
  }
  if (outcome.kind == InjectionKind::memoryHog) text["bytes"] = outcome.hogBytes;
  if (outcome.iterationBefore > 0) {
    text["iteration_before"] = outcome.iterationBefore;
    text["iterations_ended"] = outcome.iterationsEnded;
    text["iteration_during"] = outcome.iterationsEnded > 0 ? nlohmann::ordered_json(outcome.iterationDuring) : nullptr;
  }
  text["started"] = {{"monotonic", outcome.started.monotonic}, {"wall", outcome.started.wall}};
  if (outcome.confirmed.monotonic > 0)
    text["confirmed"] = {{"monotonic", outcome.confirmed.monotonic}, {"wall", outcome.confirmed.wall}};
  text["ended"] = {{"monotonic", outcome.ended.monotonic}, {"wall", outcome.ended.wall}};
  text["effective"] = effective(outcome);
  text["explanation"] = explain(outcome);
  return jsonText(text);
}

}  // namespace falcon::tools
