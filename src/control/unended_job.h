// Whether a job whose controller has died still lacks its last event.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace falcon::control {

/// What the newest of these lines (docs/events.schema.json) that tells of this job's beginning or end says: true, that
/// it began, at `since` (seconds since 1970) or later; false, that it has ended, Falcon was switched off in it, or it
/// is an earlier one. Nothing: none of the lines tells.
std::optional<bool> tellsOfUnendedJob(std::string_view lines, const std::string& job, double since);

/// The same of a file of events and the older ones that are kept beside it. False where it is no file, or not to be
/// read.
bool hasUnendedJob(const std::string& path, const std::string& job, double since);

}  // namespace falcon::control
