// Other processes, seen through /proc.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"

namespace falcon::tools {

/// Children, their children and so on of `ancestor`, as far as they are there now; zombies too.
std::set<pid_t> descendantsOf(pid_t ancestor);

/// Kills (SIGKILL) all descendants of this process but those of `spared`, and reaps its own children, until none is
/// left or `limit` has passed. A process that is a child subreaper thereby gets at grandchildren whose parents are
/// gone.
/// @return whether none is left
bool killDescendants(const std::set<pid_t>& spared, Nanoseconds limit);

/// Whether a signal has stopped it (SIGSTOP and its kind).
bool isStopped(pid_t process);

/// What kill() takes for a process and all that belongs to it: its group where it leads one, else it alone.
pid_t targetOf(pid_t process);

/// Processor time that a process with all its threads has used; nothing where there is no such process.
std::optional<Nanoseconds> processorTimeOf(pid_t process);

}  // namespace falcon::tools
