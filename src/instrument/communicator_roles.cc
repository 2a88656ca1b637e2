#include "instrument/communicator_roles.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace falcon::instrument {
namespace {

/// Groups that look alike: of one size, at one distance from member to member. Not their calls: stages of unequal size
/// sum their gradients in unequal numbers of pieces.
struct Kind {
  std::size_t size = 0;
  Rank stride = 0;
  auto operator<=>(const Kind&) const = default;
};
struct Groups {
  std::vector<CommunicatorId> ids;
  std::set<Rank> members;
  double collectives = 0;  ///< the sum over all
  long calls() const { return std::lround(collectives / static_cast<double>(ids.size())); }
};

Kind kindOf(const CommunicatorShape& shape) {
  std::vector<Rank> members = shape.members;
  std::sort(members.begin(), members.end());
  return {members.size(), members.size() > 1 ? members[1] - members[0] : 0};
}

/// Forgets kinds that do not cover the job, where some other does.
void keepWhatCovers(std::map<Kind, Groups>& kinds, std::size_t everybody) {
  const auto covers = [&](const auto& kind) { return kind.second.members.size() == everybody; };
  if (std::any_of(kinds.begin(), kinds.end(), covers))
    std::erase_if(kinds, [&](const auto& kind) { return !covers(kind); });
}

Rank rootOf(std::map<Rank, Rank>& parents, Rank rank) {
  Rank root = parents.try_emplace(rank, rank).first->second;
  if (root != rank) parents[rank] = root = rootOf(parents, root);
  return root;
}

}  // namespace

const char* nameOf(CommunicatorRole role) {
  switch (role) {
    case CommunicatorRole::data:
      return "data parallel";
    case CommunicatorRole::pipeline:
      return "pipeline";
    case CommunicatorRole::tensor:
      return "tensor parallel";
    case CommunicatorRole::job:
      return "whole job";
    case CommunicatorRole::unknown:
      break;
  }
  return "unknown";
}

std::map<CommunicatorId, CommunicatorRole> inferRoles(std::span<const CommunicatorShape> communicators) {
  std::map<CommunicatorId, CommunicatorRole> roles;
  std::set<Rank> everybody;
  std::map<Kind, Groups> kinds;  // of those that sum and gather
  double pipelines = 0, messages = 0;
  for (const CommunicatorShape& shape : communicators) everybody.insert(shape.members.begin(), shape.members.end());
  bool smaller = false;
  for (const CommunicatorShape& shape : communicators)
    smaller = smaller || (shape.members.size() > 1 && shape.members.size() < everybody.size() &&
                          shape.collectives + shape.messages > 0);
  const auto insideAPipeline = [&](const CommunicatorShape& shape) {
    return std::any_of(communicators.begin(), communicators.end(), [&](const CommunicatorShape& other) {
      return other.messages > other.collectives && other.members.size() < everybody.size() &&
             std::all_of(shape.members.begin(), shape.members.end(), [&](Rank member) {
               return std::find(other.members.begin(), other.members.end(), member) != other.members.end();
             });
    });
  };
  for (const CommunicatorShape& shape : communicators) {
    CommunicatorRole& role = roles[shape.communicator];
    if (shape.members.size() < 2 || shape.collectives + shape.messages <= 0) continue;
    if (shape.messages > shape.collectives) {
      role = CommunicatorRole::pipeline;
      pipelines += 1;
      messages += shape.messages;
    } else if (smaller && shape.members.size() == everybody.size()) {
      role = CommunicatorRole::job;
    } else if (!insideAPipeline(shape)) {
      Groups& groups = kinds[kindOf(shape)];
      groups.ids.push_back(shape.communicator);
      groups.members.insert(shape.members.begin(), shape.members.end());
      groups.collectives += shape.collectives;
    }
  }
  keepWhatCovers(kinds, everybody.size());
  const auto isTensor = [&](const Kind& kind, const Groups& groups) {
    bool fewer = false, more = false;
    for (const auto& [other, others] : kinds) {
      fewer = fewer || others.calls() < groups.calls();
      more = more || others.calls() > groups.calls();
    }
    if (fewer || more) return !more;
    if (pipelines > 0) return static_cast<double>(groups.calls()) >= messages / pipelines;
    return kind.stride == 1 && kind.size < everybody.size();
  };
  for (const auto& [kind, groups] : kinds)
    for (const CommunicatorId id : groups.ids)
      roles[id] = isTensor(kind, groups) ? CommunicatorRole::tensor : CommunicatorRole::data;
  for (const CommunicatorShape& shape : communicators)
    if (shape.registered != CommunicatorRole::unknown) roles[shape.communicator] = shape.registered;
  return roles;
}

std::vector<std::vector<Rank>> ranksOfEqualWork(std::span<const CommunicatorShape> communicators,
                                                const std::map<CommunicatorId, CommunicatorRole>& roles) {
  std::map<Rank, Rank> parents;
  for (const CommunicatorShape& shape : communicators) {
    const auto role = roles.find(shape.communicator);
    if (role == roles.end()) continue;
    if (role->second != CommunicatorRole::data && role->second != CommunicatorRole::tensor) continue;
    for (const Rank member : shape.members) {
      const Rank a = rootOf(parents, shape.members.front()), b = rootOf(parents, member);
      parents[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<Rank, std::vector<Rank>> groups;
  for (const auto& [rank, parent] : std::map<Rank, Rank>(parents)) groups[rootOf(parents, rank)].push_back(rank);
  std::vector<std::vector<Rank>> list;
  for (auto& [root, members] : groups) list.push_back(std::move(members));
  return list;
}

}  // namespace falcon::instrument
