#include "report/duration_histogram.h"

#include <algorithm>

#include "base/escaped.h"
#include "base/format.h"

namespace falcon::report {

void DurationHistogram::add(double seconds) {
  for (std::size_t i = 0; i < bounds.size(); ++i)
    if (seconds <= bounds[i]) ++within[i];
  ++count;
  sum += seconds;
}

void CollectiveDurations::name(CommunicatorId communicator, const std::string& name) {
  if (!name.empty() && names_.size() < mostCommunicators) names_.emplace(communicator, validUtf8(name));
}

void CollectiveDurations::add(const CallRecord& record) {
  if (isPointToPoint(record.operation)) return;
  auto name = names_.find(record.communicator);
  if (name == names_.end() && names_.size() < mostCommunicators)
    name = names_.emplace(record.communicator, fmt::format("{:016x}", record.communicator)).first;
  byName_[{name == names_.end() ? "other" : name->second, nameOf(record.operation)}].add(
      std::max(0.0, seconds(record.leave - record.enter)));
}

}  // namespace falcon::report
