#include "instrument/communicator_names.h"

#include <algorithm>

#include "base/format.h"
#include "base/rank_list.h"

namespace falcon::instrument {
namespace {

/// Longer lists are told by their order, or cut.
constexpr std::size_t mostListed = 8;

/// Ranks that share a number cannot be told apart.
bool areKnown(std::vector<Rank> members) {
  std::sort(members.begin(), members.end());
  return !members.empty() && members.front() >= 0 &&
         std::adjacent_find(members.begin(), members.end()) == members.end();
}

std::string quoted(const std::string& name) {
  return name.empty() ? "" : '"' + name + '"';
}

}  // namespace

std::string ranksText(std::vector<Rank> ranks) {
  std::sort(ranks.begin(), ranks.end());
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  if (ranks.size() <= mostListed) return "ranks " + listOf(ranks);
  const Rank stride = ranks[1] - ranks[0];
  bool even = true;
  for (std::size_t i = 1; i < ranks.size(); ++i) even = even && ranks[i] - ranks[i - 1] == stride;
  if (even && stride == 1) return fmt::format("ranks {} to {}", ranks.front(), ranks.back());
  if (even) return fmt::format("{} ranks, one in {} from {} to {}", ranks.size(), stride, ranks.front(), ranks.back());
  const std::size_t more = ranks.size() - mostListed;
  ranks.resize(mostListed);
  return fmt::format("ranks {} and {} more", listOf(ranks), more);
}

CommunicatorNames::CommunicatorNames(std::span<const CommunicatorShape> shapes, const GivenNames& given) {
  std::vector<CommunicatorShape> complete;
  for (const CommunicatorShape& shape : shapes)
    if (areKnown(shape.members)) complete.push_back(shape);
  const auto roles = inferRoles(complete);
  std::map<CommunicatorRole, std::map<std::vector<Rank>, std::vector<CommunicatorId>>> groups;
  for (CommunicatorShape& shape : complete) {
    std::sort(shape.members.begin(), shape.members.end());
    known_[shape.communicator].ranks = ranksText(shape.members);
    if (const CommunicatorRole role = roles.at(shape.communicator); role != CommunicatorRole::unknown)
      groups[role][shape.members].push_back(shape.communicator);
  }
  for (const auto& [role, byMembers] : groups) {
    int number = 0;
    for (const auto& [members, ids] : byMembers) {
      // There is one whole job.
      const std::string part = byMembers.size() == 1 && role == CommunicatorRole::job
                                   ? instrument::nameOf(role)
                                   : fmt::format("{} {}", instrument::nameOf(role), number);
      for (std::size_t i = 0; i < ids.size(); ++i)
        known_[ids[i]].part = i == 0 ? part : fmt::format("{} #{}", part, i + 1);
      ++number;
    }
  }
  for (const auto& [id, name] : given) known_[id].given = name;
}

CommunicatorNames::Known CommunicatorNames::find(CommunicatorId id) const {
  const auto found = known_.find(id);
  return found == known_.end() ? Known() : found->second;
}

std::string CommunicatorNames::nameOf(CommunicatorId id) const {
  const Known known = find(id);
  std::string name = !known.part.empty() ? known.part : known.given.empty() ? known.ranks : "";
  if (!known.given.empty()) name += (name.empty() ? "" : " ") + quoted(known.given);
  return name.empty() ? fmt::format("communicator {:016x}", id) : name;
}

std::string CommunicatorNames::titleOf(CommunicatorId id) const {
  const Known known = find(id);
  const std::string name = nameOf(id);
  if (!known.ranks.empty()) return name == known.ranks ? name : name + ": " + known.ranks;
  return known.given.empty() ? name : fmt::format("communicator {:016x} {}", id, name);
}

std::string CommunicatorNames::membersOf(CommunicatorId id) const {
  const Known known = find(id);
  const std::string name = nameOf(id);
  if (known.ranks.empty())
    return fmt::format("the members of communicator {:016x}{}", id, known.given.empty() ? "" : " (" + name + ")");
  return name == known.ranks ? name : fmt::format("{} ({})", known.ranks, name);
}

std::vector<CommunicatorShape> shapesIn(std::span<const CallLogView* const> logs) {
  std::map<CommunicatorId, CommunicatorShape> shapes;
  std::map<CommunicatorId, double> telling;
  for (const CallLogView* log : logs)
    for (const CommunicatorView& view : log->communicators) {
      CommunicatorShape& shape = shapes[view.id];
      shape.communicator = view.id;
      shape.collectives += static_cast<double>(view.collectives);
      std::vector<Rank> members;
      for (const MemberView& member : view.members) {
        members.push_back(member.jobRank);
        shape.messages += static_cast<double>(member.sent + member.received);
      }
      if (!areKnown(shape.members)) shape.members = std::move(members);
      ++telling[view.id];
    }
  std::vector<CommunicatorShape> list;
  for (auto& [id, shape] : shapes) {
    shape.collectives /= telling[id];
    shape.messages /= telling[id];
    list.push_back(std::move(shape));
  }
  return list;
}

GivenNames givenNamesIn(std::span<const CallLogView* const> logs) {
  GivenNames names;
  for (const CallLogView* log : logs)
    for (const CommunicatorView& view : log->communicators)
      if (!view.name.empty()) names[view.id] = view.name;
  return names;
}

}  // namespace falcon::instrument
