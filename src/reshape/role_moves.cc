#include "reshape/role_moves.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/format.h"

namespace falcon::reshape {

Status checkRoles(std::span<const int> roles, int ranks) {
  if (static_cast<int>(roles.size()) != ranks)
    return Error::invalidArgument("{} roles for {} ranks; every rank takes one", roles.size(), ranks);
  std::vector<bool> taken(roles.size());
  for (std::size_t rank = 0; rank < roles.size(); ++rank) {
    const int role = roles[rank];
    if (role < 0 || role >= ranks)
      return Error::invalidArgument("rank {} takes role {}, not 0 to {}", rank, role, ranks - 1);
    if (taken[static_cast<std::size_t>(role)]) return Error::invalidArgument("two ranks take role {}", role);
    taken[static_cast<std::size_t>(role)] = true;
  }
  return {};
}

Rank holderOf(int role, std::span<const int> roles) {
  return static_cast<Rank>(std::find(roles.begin(), roles.end(), role) - roles.begin());
}

std::vector<RoleMove> movesFor(std::span<const int> before, std::span<const int> after, std::span<const int> places,
                               const std::set<Link>& avoid) {
  std::vector<RoleMove> moves;
  std::map<Rank, int> sends;  // of what replicas have
  const auto isSamePlace = [&](int one, int other) {
    if (places.empty()) return one == other;
    return places[static_cast<std::size_t>(one)] == places[static_cast<std::size_t>(other)];
  };
  for (Rank to = 0; to < static_cast<Rank>(after.size()); ++to) {
    const int role = after[static_cast<std::size_t>(to)];
    if (before[static_cast<std::size_t>(to)] == role) continue;
    const Rank holder = holderOf(role, before);
    moves.push_back({role, holder, to, false});
    // Worst first: over a link to be avoided, then by what is sent already, then who has the role.
    const auto costOf = [&](Rank from) {
      if (from == to) return std::tuple(-1, 0, 0, from);
      return std::tuple(avoid.contains({from, to}) ? 1 : 0, sends.contains(from) ? sends.at(from) : 0,
                        from == holder ? 0 : 1, from);
    };
    Rank best = holder;
    for (Rank from = 0; from < static_cast<Rank>(before.size()); ++from)
      if (isSamePlace(before[static_cast<std::size_t>(from)], role) && costOf(from) < costOf(best)) best = from;
    if (best != to) ++sends[best];
    moves.push_back({role, best, to, true});
  }
  return moves;
}

}  // namespace falcon::reshape
