#include "replay/score.h"

#include <algorithm>

#include "base/median.h"

namespace falcon::replay {
namespace {

using instrument::ChangeKind;

/// How long after `from` the first event of this kind came, if it did.
std::optional<std::int64_t> delayOf(ChangeKind kind, std::int64_t from, const std::vector<Event>& events) {
  const auto found = std::find_if(events.begin(), events.end(),
                                  [=](const Event& event) { return event.kind == kind && event.iteration >= from; });
  if (found == events.end()) return std::nullopt;
  return found->iteration - from;
}

std::optional<double> medianOf(std::vector<double> delays) {
  if (delays.empty()) return std::nullopt;
  return median(std::move(delays));
}

}  // namespace

Score scoreOf(const std::vector<Event>& events, const std::vector<Episode>& episodes) {
  Score score;
  std::vector<double> onsetDelays, reliefDelays;
  for (const Episode& episode : episodes) {
    const auto onset = delayOf(ChangeKind::onset, episode.start, events);
    if (onset && *onset <= allowedDelay) {
      ++score.truePositive;
      onsetDelays.push_back(static_cast<double>(*onset));
    } else {
      ++score.falseNegative;
    }
    const auto relief = delayOf(ChangeKind::relief, episode.end, events);
    if (relief) reliefDelays.push_back(static_cast<double>(*relief));
  }
  for (const Event& event : events) {
    const bool explained = std::any_of(episodes.begin(), episodes.end(), [&](const Episode& episode) {
      return event.iteration >= episode.start && event.iteration <= episode.end + allowedDelay;
    });
    score.falsePositive += event.kind == ChangeKind::onset && !explained;
  }
  score.onsetDelayMedian = medianOf(std::move(onsetDelays));
  score.reliefDelayMedian = medianOf(std::move(reliefDelays));
  return score;
}

}  // namespace falcon::replay
