// What is no plain slow rank or link: a right verdict, or "not certain", and never an innocent named.
#pragma once

#include <string>
#include <vector>

#include "injections/scoring.h"
#include "injections/slow_job.h"

namespace falcon::injections {

/// dead-rank: a rank is killed while a slow link is tested. dead-link: the slow link goes down while it is tested.
/// Both end the job. noise: every link's speed moves by 5 % all the time, and one becomes slow. busy: processes that
/// have nothing to do with the job, four on each core. all-slow: all ranks are slowed alike.
std::vector<std::string> badCases();

/// Runs in a job of its own that knows what is healthy. Throws std::runtime_error where the case could
/// not be brought about.
/// @param seed  draws who is hit
Row runBadCase(const std::string& name, std::uint64_t seed, SlowJob& job);

}  // namespace falcon::injections
