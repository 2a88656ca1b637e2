// The running ranks of this host in figures, gathered from their call logs time and again.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events/event_tail.h"
#include "jobs/job_files.h"
#include "metrics/event_facts.h"
#include "report/duration_histogram.h"

namespace falcon::metrics {

struct RankMetrics {
  std::string job, node;
  Rank rank = -1;
  double iterationSeconds = 0;  ///< 0: not known yet
  report::CollectiveDurations durations;
  std::uint64_t missed = 0;                        ///< calls that were overwritten in the log before they were read
  std::optional<EventFacts> facts;                 ///< of the controller: it speaks for the job
  std::optional<transport::net::NetSnapshot> net;  ///< what its net plugin tells
};

/// Used by one thread, or under a lock.
class MetricsBook {
 public:
  /// @param job  only this one; "": all
  explicit MetricsBook(std::string job) : job_(std::move(job)) {}

  /// Reads what is new. To be called often enough that the logs are not overwritten in between.
  void update();
  const std::map<std::string, RankMetrics>& ranks() const { return ranks_; }  ///< by the path of the call log

 private:
  struct Position {
    std::int64_t pid = 0;
    std::uint64_t calls = 0;
  };
  struct JobEvents {
    std::string path;
    events::EventTail tail;
    EventFacts facts;
  };

  void read(const jobs::RankFile& file, RankMetrics& metrics);

  const std::string job_;
  std::map<std::string, RankMetrics> ranks_;
  std::map<std::string, Position> positions_;
  std::map<std::string, JobEvents> events_;  ///< by the job's folder
};

}  // namespace falcon::metrics
