// How the demo's job, and what makes it slow, are started. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "demo/schedule.h"

namespace falcon::demo {

struct JobSurroundings {
  bool withFalcon = true;
  bool mitigate = true;  ///< work around what is found; false: only name it
  JobShape shape;
  bool namespaces = true;   ///< permitted here; else links are throttled inside the socket transport
  bool cgroups = true;      ///< permitted here; else ranks are slowed by duty-cycle stops
  std::string programs;     ///< folder of falcon and falcon-train
  std::string folder;       ///< for logs; exists
  std::string startFile{};  ///< the ranks wait until it is there; empty: they do not wait
};

/// The job leaves job.json, iterations.jsonl and events.jsonl in the folder.
std::vector<std::string> jobCommand(const JobSurroundings& job);
std::map<std::string, std::string> jobEnvironment(const JobSurroundings& job);
/// `falcon inject`; an injection without length lasts until it is ended.
std::vector<std::string> injectCommand(const JobSurroundings& job, const Injection& injection);

/// What the job's environment holds beside NCCL_FALCON, as one would type it.
std::string settingsText();

}  // namespace falcon::demo
