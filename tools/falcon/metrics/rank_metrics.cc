#include "metrics/rank_metrics.h"

#include <utility>

namespace falcon::metrics {

void MetricsBook::read(const jobs::RankFile& file, RankMetrics& metrics) {
  Position& position = positions_[file.path];
  if (position.pid != file.view.pid || file.view.calls < position.calls) {  // another process, under the same name
    position = {file.view.pid, 0};
    metrics = {};
  }
  metrics.job = file.view.identity.job;
  metrics.node = file.view.identity.host;
  metrics.rank = file.view.identity.jobRank;
  metrics.iterationSeconds = file.view.iterationSeconds;
  const std::uint64_t before = position.calls;
  if (file.view.calls == before) return;
  // Since the number was read more calls may have come, and the newest are given: some more are asked for.
  constexpr std::uint64_t meanwhile = 4096;
  const auto log = instrument::readCallLog(file.path, file.view.calls - before + meanwhile, before);
  if (!log || log->pid != position.pid || log->calls <= before) return;
  for (const auto& communicator : log->communicators) metrics.durations.name(communicator.id, communicator.name);
  for (const auto& call : log->latest) metrics.durations.add(call);
  metrics.missed += log->calls - before - log->latest.size();
  position.calls = log->calls;
}

void MetricsBook::update() {
  std::map<std::string, RankMetrics> seen;
  for (const jobs::JobFiles& job : jobs::findJobs()) {
    if (!job.running() || job.ranks.empty()) continue;
    if (!job_.empty() && job.name != job_ && job.ranks.front().view.identity.job != job_) continue;
    // A young job's folder may not say yet where the events are.
    const auto known = events_.find(job.folder);
    if (known != events_.end() && known->second.path != job.events) events_.erase(known);
    auto& events =
        events_.try_emplace(job.folder, JobEvents{job.events, events::EventTail(job.events, true, job.name), {}})
            .first->second;
    for (const std::string& line : events.tail.take()) events.facts.add(line);
    for (const jobs::RankFile& file : job.ranks) {
      if (!file.alive) continue;
      RankMetrics& metrics = seen[file.path] = std::move(ranks_[file.path]);
      read(file, metrics);
      metrics.net = file.net();
      metrics.facts.reset();
      if (&file == job.controller()) metrics.facts = events.facts;
    }
  }
  ranks_ = std::move(seen);
  std::erase_if(positions_, [&](const auto& each) { return !ranks_.contains(each.first); });
}

}  // namespace falcon::metrics
