#include "inject/processor_use.h"

#include <algorithm>

#include "machine/processes.h"

namespace falcon::tools {

void ProcessorUse::restart() {
  usedAtStart_ = used().value_or(0ns);
  start_ = SystemClock::instance().now();
}

std::optional<double> ProcessorUse::cores() const {
  const auto now = used();
  const double elapsed = seconds(SystemClock::instance().now() - start_);
  if (!now || elapsed <= 0) return std::nullopt;
  return std::max(0.0, seconds(*now - usedAtStart_) / elapsed);
}

std::optional<Nanoseconds> ProcessorUse::used() const {
  auto sum = processorTimeOf(process_);
  if (!sum) return std::nullopt;
  for (const pid_t child : descendantsOf(process_)) *sum += processorTimeOf(child).value_or(0ns);
  return sum;
}

}  // namespace falcon::tools
