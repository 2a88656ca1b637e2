// The short ways: of one call outside of groups, and of a group of messages. They allocate nothing once warm.
#pragma once

#include <optional>
#include <span>

#include "collectives/local_member.h"
#include "collectives/patience.h"

namespace falcon::collectives {

/// Runs `call` to its end if it can go the short way; otherwise nothing has happened. Neither holds at the call's entry
/// nor records it.
std::optional<Status> runAlone(LocalMember& member, const Call& call, const Waiting& waiting);

/// Whether a group is one of collectives of one communicator, which may go the short way one after another.
bool areCollectives(const LocalMember& member, std::span<const Submission> submissions);

/// Whether a group may go the short way of messages: sends and receives with other ranks of one communicator.
bool areMessages(const LocalMember& member, std::span<const Submission> submissions);
/// Runs them to their end, side by side. Neither holds at the call's entry nor records them.
Status runMessages(LocalMember& member, std::span<const Submission> submissions, const Waiting& waiting);

}  // namespace falcon::collectives
