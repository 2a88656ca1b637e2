// Drives a group to its end: looks for work, sleeps where there is none, and lets itself be held.
#pragma once

#include <span>

#include "base/hold_point.h"
#include "collectives/group_run.h"
#include "collectives/patience.h"

namespace falcon::collectives {

/// A failure rings the doorbell; this only bounds what a lost ring costs.
inline constexpr Nanoseconds longestSleep = 100ms;

/// Blocks until the started `run` has finished. Between any two turns it may be held by one of `holds`.
Status drive(GroupRun& run, const Waiting& waiting, std::span<HoldPoint* const> holds);

}  // namespace falcon::collectives
