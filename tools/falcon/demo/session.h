// One run of the demo's job, with a separate process injecting on schedule.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "demo/evaluation.h"
#include "demo/schedule.h"

namespace falcon::demo {

struct SessionInput {
  bool withFalcon = true;
  std::vector<Injection> injections;
  JobShape shape;
  bool namespaces = true;  ///< permitted here; else links are throttled inside the socket transport
  bool cgroups = true;     ///< permitted here; else ranks are slowed by duty-cycle stops
  std::string programs;    ///< folder of falcon and falcon-train
  std::string folder;      ///< for logs; exists
  bool terminal = false;   ///< show a progress line that is rewritten
  std::function<void(const std::string&)> say;  ///< one line for the screen
};

/// What the job's environment holds beside NCCL_FALCON, as one would type it.
std::string settingsText();

/// Blocks until the job has ended. Throws std::runtime_error, with the tail of the job's stderr, when it failed, and
/// Interrupted when this process is asked to end.
Run runSession(const SessionInput& input);

}  // namespace falcon::demo
