#include "support/phases.h"

#include <algorithm>

namespace falcon::support {

std::pair<Nanoseconds, Nanoseconds> commonStretch(const std::vector<instrument::RankTimeline>& ranks) {
  Nanoseconds start = Nanoseconds::min(), end = Nanoseconds::max();
  for (const auto& rank : ranks) {
    if (rank.calls.empty()) return {};
    start = std::max(start, rank.calls.front().enter);
    Nanoseconds last = rank.calls.front().leave;
    for (const auto& call : rank.calls) last = std::max(last, call.leave);
    end = std::min(end, last);
  }
  if (ranks.empty() || start >= end) return {};
  return {start, end};
}

std::vector<RankPhases> phasesOf(const instrument::JobTimeline& timeline) {
  const double length = seconds(timeline.end - timeline.start);
  std::vector<RankPhases> all;
  for (const auto& rank : timeline.ranks) {
    RankPhases phases{rank.rank, 0, {}};
    Nanoseconds covered{0}, until = timeline.start;  // calls come by their entry
    for (const auto& call : rank.calls) {
      const Nanoseconds from = std::max(call.enter, timeline.start), to = std::min(call.leave, timeline.end);
      if (from >= to) continue;
      phases.inside[{call.communicator, call.operation}] += seconds(to - from) / length;
      if (to > until) covered += to - std::max(from, until);
      until = std::max(until, to);
    }
    phases.outside = 1 - seconds(covered) / length;
    all.push_back(std::move(phases));
  }
  return all;
}

std::map<std::string, double> rangeShares(const instrument::RangeLogView& log, Nanoseconds start, Nanoseconds end) {
  std::map<std::string, double> shares;
  if (log.latest.empty()) return shares;
  if (log.ranges > log.latest.size()) start = std::max(start, log.latest.front().end);  // older ones were overwritten
  if (start >= end) return shares;
  for (const instrument::RangeRecord& range : log.latest) {
    const Nanoseconds from = std::max(range.begin, start), to = std::min(range.end, end);
    if (from < to && range.name < log.names.size())
      shares[log.names[range.name].text] += seconds(to - from) / seconds(end - start);
  }
  return shares;
}

}  // namespace falcon::support
