// One run of the demo's job, with a separate process injecting on schedule.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "demo/evaluation.h"
#include "demo/job_commands.h"
#include "demo/schedule.h"

namespace falcon::demo {

struct SessionInput : JobSurroundings {
  std::vector<Injection> injections;
  bool terminal = false;                        ///< show a progress line that is rewritten
  std::function<void(const std::string&)> say;  ///< one line for the screen
};

/// An event on the screen, and in the transcript that README.md shows.
/// @param seconds  since the job began
std::string eventLine(double seconds, const std::string& kind, const std::string& text);

/// Blocks until the job has ended. Throws std::runtime_error, with the tail of the job's stderr, when it failed, and
/// Interrupted when this process is asked to end.
Run runSession(const SessionInput& input);

}  // namespace falcon::demo
