#include "sim/comparison.h"

#include <algorithm>
#include <optional>

#include "base/median.h"
#include "replay/detectors.h"

namespace falcon::sim {
namespace {

using instrument::ChangeKind;
using replay::Event;

constexpr std::int64_t reliefWithin = 20;

double share(int part, int whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / whole;
}

bool isSlower(const Event& event) {
  return event.kind == ChangeKind::onset || event.kind == ChangeKind::worsening;
}

/// Counts one detector's events over job after job.
class Counter {
 public:
  explicit Counter(std::string_view detector) { result_.detector = detector; }

  void add(const SimulatedJob& job, int index, const std::vector<Event>& events) {
    countJob(job, events);
    countFalseOnsets(job, index, events);
    for (std::size_t i = 0; i < job.episodes.size(); ++i) countEpisode(job, i, index, events);
  }

  DetectorResult result() && {
    result_.onsetDelayMedian = median(std::move(onsetDelays_), 0);
    result_.reliefDelayMedian = median(std::move(reliefDelays_), 0);
    return std::move(result_);
  }

 private:
  static bool lies(const Event& event, const SimulatedEpisode& episode) {
    return event.iteration >= episode.labels.start && event.iteration <= episode.labels.end + replay::allowedDelay;
  }

  void countJob(const SimulatedJob& job, const std::vector<Event>& events) {
    JobCounts& counts = job.population == &singleNode ? result_.singleNode : result_.fourNodes;
    const bool anyOnset = std::any_of(events.begin(), events.end(), isSlower);
    const bool anyFound = std::any_of(events.begin(), events.end(), [&](const Event& event) {
      return isSlower(event) && std::any_of(job.episodes.begin(), job.episodes.end(),
                                            [&](const SimulatedEpisode& episode) { return lies(event, episode); });
    });
    if (job.episodes.empty()) {
      ++counts.healthy;
      counts.healthyWithOnset += anyOnset;
      counts.healthyWithMinor +=
          std::any_of(events.begin(), events.end(), [](const Event& event) { return event.kind == ChangeKind::minor; });
    } else {
      ++counts.failSlow;
      counts.failSlowMissed += !anyFound;
    }
  }

  void countFalseOnsets(const SimulatedJob& job, int index, const std::vector<Event>& events) {
    int count = 0;
    for (const Event& event : events)
      count += event.kind == ChangeKind::onset &&
               std::none_of(job.episodes.begin(), job.episodes.end(),
                            [&](const SimulatedEpisode& episode) { return lies(event, episode); });
    result_.falseOnsets += count;
    if (count > 0) result_.jobsWithFalseOnset.push_back(index);
  }

  void countEpisode(const SimulatedJob& job, std::size_t which, int index, const std::vector<Event>& events) {
    const SimulatedEpisode& episode = job.episodes[which];
    const Strength strength = strengthOf(episode, job);
    EpisodeCounts& counts = result_.episodes[static_cast<std::size_t>(strength)];
    ++counts.episodes;
    const auto found = std::find_if(events.begin(), events.end(),
                                    [&](const Event& event) { return isSlower(event) && lies(event, episode); });
    if (found != events.end()) {
      ++counts.found;
      const std::int64_t delay = found->iteration - episode.labels.start;
      counts.foundWithinFive += found->kind == ChangeKind::onset && delay <= replay::allowedDelay;
      if (strength == Strength::strong) onsetDelays_.push_back(static_cast<double>(delay));
    } else if (strength == Strength::strong) {
      result_.jobsWithMissedStrong.push_back(index);
    }
    if (strength == Strength::strong && found != events.end()) countRelief(job, which, events);
  }

  void countRelief(const SimulatedJob& job, std::size_t which, const std::vector<Event>& events) {
    const std::int64_t end = job.episodes[which].labels.end;
    const auto next = which + 1 < job.episodes.size() ? job.episodes[which + 1].labels.start
                                                      : static_cast<std::int64_t>(job.milliseconds.size()) + 1;
    if (next - end < reliefWithin) return;
    ++result_.ended;
    for (const Event& event : events)
      if (event.kind == ChangeKind::relief && event.iteration >= end && event.iteration < end + reliefWithin) {
        ++result_.relieved;
        reliefDelays_.push_back(static_cast<double>(event.iteration - end));
        return;
      }
  }

  DetectorResult result_;
  std::vector<double> onsetDelays_, reliefDelays_;
};

}  // namespace

double JobCounts::accuracy() const {
  return 1 - share(healthyWithOnset + failSlowMissed, healthy + failSlow);
}
double JobCounts::falsePositiveRate() const {
  return share(healthyWithOnset, healthy);
}
double JobCounts::falseNegativeRate() const {
  return share(failSlowMissed, failSlow);
}

std::vector<DetectorResult> compare(const SimulatedJobs& jobs, const std::vector<std::string_view>& detectors) {
  std::vector<Counter> counters(detectors.begin(), detectors.end());
  for (int index = 0; index < jobs.count(); ++index) {
    const SimulatedJob job = jobs[index];
    const auto times = timesOf(job);
    for (std::size_t i = 0; i < detectors.size(); ++i)
      counters[i].add(job, index, replay::replay(*replay::makeDetector(detectors[i]), times));
  }
  std::vector<DetectorResult> results;
  for (Counter& counter : counters) results.push_back(std::move(counter).result());
  return results;
}

}  // namespace falcon::sim
