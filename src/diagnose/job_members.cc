#include "diagnose/job_members.h"

#include <fmt/format.h>

#include <algorithm>

namespace falcon::diagnose {

using instrument::CommunicatorView;
using instrument::ProcessState;
using instrument::RankSnapshot;

const CallRecord* Member::inFlight(std::uint64_t collective) const {
  for (const CallRecord* call : collectives)
    if (call->sequence == collective) return call;
  return nullptr;
}

const CallRecord* Member::finished(std::uint64_t collective) const {
  if (!snapshot || !view) return nullptr;
  const auto& latest = snapshot->log.latest;
  for (auto call = latest.rbegin(); call != latest.rend(); ++call)
    if (call->communicator == view->id && call->rank == view->rank && !isPointToPoint(call->operation) &&
        call->sequence == collective)
      return &*call;
  return nullptr;
}

std::vector<const CallRecord*> Member::collectivesUpTo(std::uint64_t number) const {
  std::vector<const CallRecord*> calls;
  if (!snapshot || !view) return calls;
  for (const CallRecord& call : snapshot->log.latest)
    if (call.communicator == view->id && call.rank == view->rank && !isPointToPoint(call.operation) &&
        call.sequence <= number)
      calls.push_back(&call);
  for (const CallRecord* call : collectives)
    if (call->sequence <= number) calls.push_back(call);
  const auto& failure = view->failure;
  if (failure && !isPointToPoint(failure->operation) && failure->sequence <= number) calls.push_back(&*failure);
  return calls;
}

const CallRecord* Member::partnerOf(const CallRecord& call, const Member& other) const {
  for (const CallRecord* own : messages)
    if (own->peer == other.name.rank && own->operation != call.operation && own->sequence == call.sequence) return own;
  return nullptr;
}

bool Member::isCaller(const CallRecord& call) const {
  if (!view || !snapshot->severalRanks()) return true;
  return call.communicator == view->id && call.rank == view->rank;
}

namespace {

/// A rank's own view of a communicator; the newest where an id was used again.
void take(JobCommunicator& communicator, const RankSnapshot& rank, const CommunicatorView& view) {
  if (communicator.members.size() < static_cast<std::size_t>(view.size)) communicator.members.resize(view.size);
  for (std::size_t other = 0; other < view.members.size(); ++other)
    communicator.members[other].name.jobRank = view.members[other].jobRank;
  Member& member = communicator.members[view.rank];
  if (member.view && member.view->live) return;
  member.snapshot = &rank;
  member.view = &view;
  member.collectives.clear();
  member.messages.clear();
  for (const CallRecord& call : rank.log.inFlight)
    if (call.communicator == view.id && call.rank == view.rank)
      (isPointToPoint(call.operation) ? member.messages : member.collectives).push_back(&call);
  std::sort(member.collectives.begin(), member.collectives.end(),
            [](const CallRecord* a, const CallRecord* b) { return a->sequence < b->sequence; });
  communicator.live = communicator.live || (view.live && rank.process != ProcessState::ended);
}

/// By the job's rank where that tells members apart.
void nameMembers(JobCommunicator& communicator, std::span<const RankSnapshot> ranks) {
  std::map<Rank, int> sharing;
  for (const Member& member : communicator.members) ++sharing[member.name.jobRank];
  for (std::size_t i = 0; i < communicator.members.size(); ++i) {
    Member& member = communicator.members[i];
    const Rank jobRank = member.name.jobRank;
    member.name.rank = static_cast<Rank>(i);
    if (jobRank >= 0 && sharing[jobRank] == 1) {
      member.name.text = fmt::format("rank {}", jobRank);
      for (const RankSnapshot& rank : ranks)
        if (!member.snapshot && rank.log.identity.jobRank == jobRank) member.snapshot = &rank;
    } else {
      member.name.jobRank = -1;
      member.name.text = fmt::format("rank {} of {}", i, communicator.name);
    }
  }
}

}  // namespace

instrument::CommunicatorNames namesIn(std::span<const RankSnapshot> ranks) {
  std::vector<const instrument::CallLogView*> logs;
  for (const RankSnapshot& rank : ranks) logs.push_back(&rank.log);
  return instrument::namesIn(logs);
}

std::vector<JobCommunicator> communicatorsOf(std::span<const RankSnapshot> ranks) {
  const bool over = instrument::allGone(ranks);
  std::map<CommunicatorId, JobCommunicator> known;
  const instrument::CommunicatorNames names = namesIn(ranks);
  for (const RankSnapshot& rank : ranks)
    for (const CommunicatorView& view : rank.log.communicators) {
      JobCommunicator& communicator = known[view.id];
      communicator.id = view.id;
      communicator.name = names.nameOf(view.id);
      communicator.title = names.titleOf(view.id);
      communicator.among = names.membersOf(view.id);
      take(communicator, rank, view);
      communicator.live = communicator.live || (over && view.failure);
    }
  std::vector<JobCommunicator> communicators;
  for (auto& [id, communicator] : known) {
    if (!communicator.live) continue;
    nameMembers(communicator, ranks);
    communicators.push_back(std::move(communicator));
  }
  return communicators;
}

}  // namespace falcon::diagnose
