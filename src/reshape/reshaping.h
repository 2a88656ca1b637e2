// Ranks exchange their roles between two iterations: all of them or none.
//
// Every rank goes through the same steps; after each all tell each other how it went, and where it failed on anybody
// everybody goes back to the old shape, in which nothing was changed yet:
//
//   agree     the same roles everywhere, the same places for groups
//   prepare   the framework makes room for the new role's state
//   move      state goes from rank to rank into that room, checked by checksums
//   rebuild   the groups are made anew among those who have their roles now
//   commit    local, and cannot fail: the framework and the handles change over
//
// A rank that dies on the way ends the job as it does at any other time; what the others have is whole, of the old
// shape or, once all steps had succeeded everywhere, of the new one.
// Source: Falcon, arXiv 2410.12588, section 5.3 (pause, exchange peer to peer, resume); that the old state stays until
// all have the new one is ours: an exchange in place survives no failure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "reshape/registered_state.h"
#include "reshape/role_moves.h"

namespace falcon::reshape {

/// A message of state between two ranks. `received` null on the sender, `sent` on the receiver; for oneself both.
struct StateMessage {
  Rank from = -1, to = -1;
  const std::byte* sent = nullptr;
  std::byte* received = nullptr;
  std::size_t bytes = 0;
};

/// What a rank has of one group: of a communicator whose members are given by their roles.
struct GroupPlace {
  std::uint64_t group = 0;  ///< alike on its members; 0: none here
  Rank rank = -1;           ///< in it
};

enum class ReshapeStep : std::uint8_t { agree, prepare, move, rebuild, commit };
/// "agree", "prepare", ...
const char* nameOf(ReshapeStep step);

/// What reshape() needs of the framework and the engine: a seam, so that tests can make every step fail. All calls come
/// from the thread that calls reshape(), in the order of the steps.
class ReshapeWorld {
 public:
  virtual ~ReshapeWorld() = default;

  /// Collective: everyone's bytes, by rank.
  virtual Result<std::vector<std::string>> allGather(std::string_view mine) = 0;
  /// A step begins; for tests and ranges.
  virtual void at(ReshapeStep) {}

  /// The state of the role that this rank has.
  virtual std::vector<StateBuffer> state() const = 0;
  /// Room for the state of `role`, buffers with its names and sizes. Only where the role changes.
  virtual Result<std::vector<StateBuffer>> prepare(int role) = 0;
  /// The messages of this rank, in an order that all keep. Collective: every rank calls, also with none.
  virtual Status exchange(std::vector<StateMessage> messages) = 0;

  /// What this rank has at each place for a group.
  virtual std::vector<GroupPlace> groups() const = 0;
  /// Makes the group at `place` anew. Collective over all ranks, once for each place that anybody has a group at.
  /// @param color  alike for those who are in one group; -1: none here
  virtual Status rebuild(std::size_t place, int color, const GroupPlace& as) = 0;

  /// From here on this rank has `role`. Only where the role changes: `state` as prepare() gave it.
  virtual void commit(int role, std::vector<StateBuffer> state) = 0;
  /// The groups that were rebuilt replace the old ones. On all ranks, before commit().
  virtual void adoptGroups() = 0;
  /// All is as it was. What prepare() and rebuild() have made goes.
  virtual void abandon() = 0;
};

struct ReshapeRequest {
  Rank rank = -1;
  Roles before, after;      ///< by rank
  std::vector<int> places;  ///< by role, as movesFor() takes them; the same on all ranks
  std::set<Link> avoid;     ///< slow links
};

struct ReshapeResult {
  std::uint64_t bytesReceived = 0;  ///< of state, by this rank
  std::uint64_t bytesInAll = 0;     ///< by all ranks
};

/// Collective. Errors: what failed first, on the lowest rank on which anything did; the same on all ranks, unless one
/// has died (remote). Nothing was changed then.
Result<ReshapeResult> reshape(const ReshapeRequest& request, ReshapeWorld& world);

}  // namespace falcon::reshape
