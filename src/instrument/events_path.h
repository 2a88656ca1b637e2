// Where a job's events are, as its folder tells.
#pragma once

#include <string>

#include "base/result.h"

namespace falcon::instrument {

/// The file that the job's controller on this host writes events to: events.jsonl in the folder, where nothing in the
/// folder names another one.
std::string eventsPath(const std::string& jobFolder);

/// Before the first event is written: leaves in the folder where events go.
/// @param chosen  "": into the folder; else that file, a relative path from this process's working directory
/// Errors: what was left there before says otherwise and cannot be changed.
Status noteEventsPath(const std::string& jobFolder, const std::string& chosen);

}  // namespace falcon::instrument
