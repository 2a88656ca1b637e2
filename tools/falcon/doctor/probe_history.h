// What earlier runs of the small job took, and whether the newest is slow against them. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace falcon::doctor {

/// One run of the small job: medians over its iterations, in seconds.
struct ProbeRecord {
  double time = 0;  ///< seconds since 1970
  std::string host;
  int ranks = 0;
  int nodes = 0;
  double iteration = 0;
  double compute = 0;    ///< of the slowest rank
  double allReduce = 0;  ///< waiting for the slowest rank included
  bool slow = false;     ///< as judged then
};

/// A line of the history file, with its line feed.
std::string toLine(const ProbeRecord& record);
/// Errors: a line that is not ours.
Result<ProbeRecord> parseLine(const std::string& line);

struct ProbeVerdict {
  bool slow = false;
  double ratio = 0;  ///< to the median of the history; 0: too little history to judge
  std::string text;  ///< for people
};

/// Source of the threshold: Falcon, arXiv 2410.12588, section 4.3.
inline constexpr double slowRatio = 1.2;
inline constexpr std::size_t leastHistory = 5;
inline constexpr std::size_t mostHistory = 100;

/// Against the median of the newest earlier runs of the same host, ranks and nodes. Those judged slow do not count: a
/// machine that stays slow stays so named, until its file is removed.
ProbeVerdict compare(const ProbeRecord& now, std::span<const ProbeRecord> history);

}  // namespace falcon::doctor
