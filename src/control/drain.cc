#include "control/drain.h"

#include <algorithm>

namespace falcon::control {

void DrainGate::enter(std::span<const CountKey> event) {
  for (const CountKey& key : event) ++entered_[key];
}

void DrainGate::order(std::uint64_t version, const Counts& targets) {
  if (version <= version_) return;
  version_ = version;
  targets_ = targets;
}

void DrainGate::lift() {
  version_ = 0;
  targets_.clear();
}

bool DrainGate::isBelow() const {
  return std::any_of(targets_.begin(), targets_.end(), [this](const auto& target) {
    const auto& [key, count] = target;
    const auto found = entered_.find(key);
    return (found == entered_.end() ? 0 : found->second) < count && concerns_(key);
  });
}

bool Drain::handle(bootstrap::ProcessId from, const DrainGate::Report& report) {
  if (!members_.contains(from)) return false;
  bool rose = false;
  for (const auto& [key, count] : report.entered) {
    std::uint64_t& target = targets_[key];
    rose |= count > target;
    target = std::max(target, count);
  }
  if (rose) {
    ++version_;
    settled_.clear();
  } else if (report.version == version_ && !report.below) {
    settled_.insert(from);
  }
  return rose;
}

}  // namespace falcon::control
