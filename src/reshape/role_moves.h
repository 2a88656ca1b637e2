// Which rank gets which role's state from whom, when roles are exchanged. Pure.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace falcon::reshape {

/// A role is what a rank does in the job, numbered by the ranks that had it when the job began: who has role 3 does
/// what rank 3 did. `roles[r]` is the role of rank r.
using Roles = std::vector<int>;

/// Errors (invalidArgument): not a permutation of 0 to ranks - 1, or of another length.
Status checkRoles(std::span<const int> roles, int ranks);

/// State of a role that goes from one rank to another; `from` may be `to`, who has it already.
struct RoleMove {
  int role = -1;
  Rank from = -1, to = -1;
  bool replicated = false;  ///< what all replicas of that place have; else what the rank alone has
  bool operator==(const RoleMove&) const = default;
};

/// For every rank whose role changes, one move of its new role's own state and one of what replicas have in common. The
/// first can only come from who has the role. The second comes from any rank of the same stage and shard: from oneself,
/// else from whoever has the role, unless the link from there is among `avoid`, or another one has less to send.
///
/// @param before, after  by rank; permutations of the same length
/// @param places         by role: alike for roles of the same stage and shard; empty: every role is its own replica
std::vector<RoleMove> movesFor(std::span<const int> before, std::span<const int> after, std::span<const int> places,
                               const std::set<Link>& avoid = {});

/// The rank that has the role.
Rank holderOf(int role, std::span<const int> roles);

}  // namespace falcon::reshape
