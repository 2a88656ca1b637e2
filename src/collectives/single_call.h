// The short way of one call outside of groups that needs no connections. Allocates nothing.
#pragma once

#include <optional>

#include "collectives/local_member.h"
#include "transport/ports.h"

namespace falcon::collectives {

/// Runs `call` to its end if it can go the short way; otherwise nothing has happened. Neither holds at the call's entry
/// nor records it.
std::optional<Status> runAlone(LocalMember& member, const Call& call, transport::Waiter& waiter);

}  // namespace falcon::collectives
