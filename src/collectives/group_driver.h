// Drives a group to its end: looks for work, sleeps where there is none, and lets itself be held.
#pragma once

#include <span>

#include "base/hold_point.h"
#include "collectives/group_run.h"

namespace falcon::collectives {

/// A failure rings the doorbell; this only bounds what a lost ring costs.
inline constexpr Nanoseconds longestSleep = 100ms;

/// Blocks until the started `run` has finished. Between any two turns it may be held by one of `holds`.
/// @param patient  yields for a moment before it sleeps: sooner to see what comes, but behind threads that compute it
///                 gets its core back only after their time slice, while who sleeps is woken before them
Status drive(GroupRun& run, transport::Waiter& waiter, std::span<HoldPoint* const> holds, bool patient);

}  // namespace falcon::collectives
