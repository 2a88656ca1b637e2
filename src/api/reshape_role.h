// What a communicator of a whole job knows of its ranks' roles, and how to exchange them.
#pragma once

#include <set>
#include <vector>

#include "api/exports.h"
#include "base/result.h"
#include "base/types.h"
#include "reshape/role_moves.h"

namespace falcon::api {

/// Used by one thread at a time, as NCCL promises of a communicator.
struct ReshapeRole {
  /// As ncclFalconRegisterReshape got them; prepare is null before.
  void* context = nullptr;
  ncclResult_t (*prepare)(void*, int, const ncclFalconBuffer_t**, size_t*) = nullptr;
  void (*commit)(void*, int) = nullptr;
  void (*abandon)(void*, int) = nullptr;
  std::vector<ncclComm*> groups;  ///< null: no group at that place
  reshape::Roles roles;           ///< in force, by rank; empty: everyone has its own
  std::size_t toldBytes = 0;      ///< of state, as Falcon plans with it

  int roleOf(Rank rank) const { return roles.empty() ? rank : roles[static_cast<std::size_t>(rank)]; }
};

/// Collective between two iterations, over a communicator of host memory that has hooks: see ncclFalconReshape.
/// Errors: see reshape::reshape(); nothing was changed then.
Status reshapeTo(const char* function, ncclComm& communicator, reshape::Roles after, std::set<Link> avoid);

/// Does what all have agreed on for the beginning of this iteration, if anything. Where it cannot be done the job goes
/// on as before, and that is no error; only a communicator that is broken is one.
Status reshapeBefore(const char* function, ncclComm& communicator, std::uint64_t iteration);

}  // namespace falcon::api
