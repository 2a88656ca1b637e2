#include "diagnose/making_analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace falcon::diagnose {

using instrument::MakingKind;
using instrument::MakingView;
using instrument::ProcessState;
using instrument::RankSnapshot;

namespace {

/// The end of a job that is over took all: that explains nothing.
bool isBroken(const RankSnapshot& rank, bool over) {
  return !over && instrument::isBroken(rank.process);
}

/// One communicator that is being made, as the logs together show it.
struct Attempt {
  struct Present {
    const RankSnapshot* snapshot = nullptr;
    const MakingView* making = nullptr;
  };
  std::map<Rank, Present> present;  ///< by rank in it
  std::set<Rank> arrived;           ///< as the rendezvous has seen them; empty where it is elsewhere
  bool met = false;
  Nanoseconds longest{0};

  const MakingView& any() const { return *present.begin()->second.making; }
  bool hasCome(Rank rank) const { return present.contains(rank) || arrived.contains(rank); }
};
using Attempts = std::map<std::pair<MakingKind, std::uint64_t>, Attempt>;

Attempts attemptsOf(std::span<const RankSnapshot> ranks) {
  Attempts attempts;
  for (const RankSnapshot& rank : ranks) {
    if (rank.process == ProcessState::ended) continue;
    for (const MakingView& making : rank.log.makings) {
      Attempt& attempt = attempts[{making.kind, making.key}];
      attempt.present[making.rank] = {&rank, &making};
      attempt.arrived.insert(making.arrived.begin(), making.arrived.end());
      attempt.met = attempt.met || making.met;
      attempt.longest = std::max(attempt.longest, rank.now - making.enter);
    }
  }
  return attempts;
}

/// Names for the ranks of a communicator that does not exist yet.
class Names {
 public:
  Names(const Attempt& attempt, std::span<const RankSnapshot> ranks, const JobCommunicator* parent)
      : ranks_(ranks), parent_(parent) {
    bool isJob = true;
    std::map<Rank, int> sharing;  // ranks that are threads of one process
    for (const auto& [rank, present] : attempt.present) ++sharing[present.snapshot->log.identity.jobRank];
    for (const auto& [rank, present] : attempt.present) {
      const auto& identity = present.snapshot->log.identity;
      jobRanks_[rank] = sharing[identity.jobRank] == 1 ? identity.jobRank : -1;
      isJob = isJob && identity.jobRank == rank && identity.worldSize == present.making->size;
    }
    if (!isJob) return;
    for (Rank rank = 0; rank < attempt.any().size; ++rank) jobRanks_[rank] = rank;
  }

  Member memberAt(Rank rank) const {
    Member member;
    member.name.rank = rank;
    if (parent_ && rank < std::ssize(parent_->members)) return parent_->members[rank];
    const auto known = jobRanks_.find(rank);
    member.name.jobRank = known == jobRanks_.end() ? -1 : known->second;
    member.name.text = member.name.jobRank >= 0 ? fmt::format("rank {}", member.name.jobRank)
                                                : fmt::format("rank {} of the communicator", rank);
    for (const RankSnapshot& each : ranks_)
      if (member.name.jobRank >= 0 && each.log.identity.jobRank == member.name.jobRank) member.snapshot = &each;
    return member;
  }

 private:
  const std::span<const RankSnapshot> ranks_;
  const JobCommunicator* const parent_;
  std::map<Rank, Rank> jobRanks_;
};

/// Waits in something else, which is the cause then.
bool waitsElsewhere(const Member& member, Nanoseconds patience, bool over) {
  if (!member.snapshot || isBroken(*member.snapshot, over)) return false;
  const auto& calls = member.snapshot->log.inFlight;
  return waitsInMaking(*member.snapshot, patience) ||
         std::any_of(calls.begin(), calls.end(), [&](const CallRecord& call) {
           return member.isCaller(call) && member.snapshot->now - call.enter >= patience;
         });
}

std::string excuseOf(const Member& member, const Attempt& attempt, const HangWords& words) {
  if (member.snapshot) return words.excuseOf(member);
  return attempt.arrived.empty() ? "no log here: it is on another host, or has not called NCCL yet"
                                 : "no log here: it has not called NCCL yet, or is on another host";
}

/// "; rank 3: its process (17) is stopped"; of many only the first.
std::string excusesOf(const std::vector<Member>& members, const Attempt& attempt, const HangWords& words) {
  constexpr std::size_t most = 4;
  std::map<std::string, std::vector<MemberName>> excuses;
  for (const Member& member : members) excuses[excuseOf(member, attempt, words)].push_back(member.name);
  std::string text;
  std::size_t told = 0;
  for (const auto& [excuse, names] : excuses)
    if (told++ < most) text += fmt::format("; {}: {}", namesOf(names), excuse);
  return text;
}

std::vector<MemberName> namesIn(const std::vector<Member>& members) {
  std::vector<MemberName> names;
  for (const Member& member : members) names.push_back(member.name);
  return names;
}

struct Roll {
  std::vector<Member> waiting, missing;
  std::vector<Member> broken;  ///< of those that wait
  bool over = false;           ///< the job
};

Roll rollOf(const Attempt& attempt, const Names& names, bool over) {
  Roll roll;
  roll.over = over;
  for (Rank rank = 0; rank < attempt.any().size; ++rank) {
    const Member member = names.memberAt(rank);
    const auto present = attempt.present.find(rank);
    // To a part of a communicator nobody comes who has left that one.
    const bool mustCome = attempt.any().kind == MakingKind::init || (member.view && member.view->live);
    if (present != attempt.present.end()) {
      roll.waiting.push_back(member);
      if (isBroken(*present->second.snapshot, over)) roll.broken.push_back(member);
    } else if (!attempt.hasCome(rank) && mustCome) {
      roll.missing.push_back(member);
    }
  }
  return roll;
}

/// Some have not come. In a split those have gone through already, perhaps, where one of those inside is stopped; in a
/// shrink they are excluded, perhaps.
bool isIncomplete(const Attempt& attempt, const Roll& roll) {
  if (attempt.met || roll.missing.empty()) return false;
  return attempt.any().kind == MakingKind::init || (attempt.any().kind == MakingKind::split && roll.broken.empty());
}

Finding judge(const Attempt& attempt, const Roll& roll, const HangWords& words, Nanoseconds patience) {
  const bool incomplete = isIncomplete(attempt, roll), one = roll.waiting.size() == 1;
  Finding finding;
  finding.kind = incomplete ? Finding::Kind::notEntered : Finding::Kind::stuck;
  finding.making = attempt.any();
  finding.communicator = attempt.any().key;
  finding.longest = attempt.longest;
  finding.waiting = namesIn(roll.waiting);
  if (incomplete) finding.culprits = namesIn(roll.missing);
  for (const Member& member : roll.broken) finding.culprits.push_back(member.name);
  const std::string who = namesOf(finding.waiting);
  const std::string what = fmt::format("{} for {}", words.describe(attempt.any()), textOf(attempt.longest));
  if (incomplete) {
    finding.cause =
        !roll.broken.empty() || !std::all_of(roll.missing.begin(), roll.missing.end(),
                                             [&](const Member& m) { return waitsElsewhere(m, patience, roll.over); });
    finding.text = fmt::format("{} {} in {}; {} {} not entered it", who, one ? "waits" : "wait", what,
                               namesOf(namesIn(roll.missing)), roll.missing.size() == 1 ? "has" : "have");
    finding.text += excusesOf(roll.missing, attempt, words);
  } else {
    finding.cause = !roll.broken.empty();
    finding.text = fmt::format("{} {} in {}, and all have entered it", who, one ? "is" : "are", what);
  }
  finding.text += excusesOf(roll.broken, attempt, words);
  return finding;
}

}  // namespace

bool waitsInMaking(const RankSnapshot& rank, Nanoseconds patience) {
  const auto& makings = rank.log.makings;
  return rank.process != ProcessState::ended &&
         std::any_of(makings.begin(), makings.end(),
                     [&](const MakingView& making) { return rank.now - making.enter >= patience; });
}

std::vector<Finding> judgeMakings(std::span<const RankSnapshot> ranks, std::span<const JobCommunicator> communicators,
                                  const HangWords& words, Nanoseconds patience) {
  std::vector<Finding> findings;
  for (const auto& [which, attempt] : attemptsOf(ranks)) {
    if (attempt.longest < patience) continue;
    const JobCommunicator* parent = nullptr;
    for (const JobCommunicator& communicator : communicators)
      if (which.first != MakingKind::init && communicator.id == which.second) parent = &communicator;
    const Names names(attempt, ranks, parent);
    findings.push_back(judge(attempt, rollOf(attempt, names, instrument::allGone(ranks)), words, patience));
  }
  return findings;
}

}  // namespace falcon::diagnose
