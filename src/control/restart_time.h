// What a restart takes, measured across it: the time of the request stays in the job's folder.
#pragma once

#include <span>
#include <string>

namespace falcon::control {

/// The job is about to end and to be started again.
/// @param folder    the job's; "": it has none
/// @param wallTime  seconds since 1970
void noteRestart(const std::string& folder, double wallTime);

/// What the last restart of this job took on this host, seconds; 0: unknown. Who asks first after a restart ends the
/// measurement: later ones, and later attempts, are told the same.
/// @param folders  this job's, then those of the attempts before it, the newest first
double restartSeconds(std::span<const std::string> folders, double wallTime);

}  // namespace falcon::control
