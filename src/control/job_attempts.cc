#include "control/job_attempts.h"

#include <algorithm>
#include <cstdlib>

namespace falcon::control {

std::vector<std::string> attemptsOf(const std::string& job) {
  std::vector<std::string> names{job};
  const char* restarts = std::getenv("TORCHELASTIC_RESTART_COUNT");
  const std::string suffix = restarts ? "." + std::string(restarts) : "";
  if (suffix.empty() || !job.ends_with(suffix)) return names;
  const std::string base = job.substr(0, job.size() - suffix.size());
  constexpr int farthest = 8;
  const int attempt = std::atoi(restarts);
  for (int before = attempt - 1; before >= std::max(0, attempt - farthest); --before)
    names.push_back(base + "." + std::to_string(before));
  return names;
}

}  // namespace falcon::control
