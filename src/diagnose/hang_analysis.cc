#include "diagnose/hang_analysis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "diagnose/hang_text.h"
#include "diagnose/job_members.h"
#include "diagnose/making_analysis.h"

namespace falcon::diagnose {

using instrument::CommunicatorView;
using instrument::ProcessState;
using instrument::RankSnapshot;

namespace {

/// What all members must agree on. The reduction counts only where there is one.
using Asked = std::tuple<Operation, DataType, ReduceOp, std::int32_t, std::uint64_t>;
Asked askedBy(const CallRecord& call) {
  const bool reduces = call.operation == Operation::allReduce || call.operation == Operation::reduce ||
                       call.operation == Operation::reduceScatter;
  return {call.operation, call.type, reduces ? call.reduction : ReduceOp::sum, call.peer, call.count};
}

class Analysis {
 public:
  Analysis(std::span<const RankSnapshot> ranks, Nanoseconds patience)
      : ranks_(ranks),
        patience_(patience),
        over_(instrument::allGone(ranks)),
        communicators_(communicatorsOf(ranks)),
        words_(communicators_) {}

  HangFindings run() {
    report_.over = over_;
    for (const RankSnapshot& rank : ranks_) report_.ranks.push_back(where(rank));
    for (const JobCommunicator& communicator : communicators_) {
      if (!judgeFailure(communicator)) judgeCollectives(communicator);
      judgeMessages(communicator);
      report_.communicators.push_back(progressOf(communicator));
    }
    for (Finding& finding : judgeMakings(ranks_, communicators_, words_, patience_)) add(std::move(finding));
    if (!over_)
      for (const JobCommunicator& communicator : communicators_) judgeDeaths(communicator);
    weigh();
    return std::move(report_);
  }

 private:
  /// The end of a job that is over took all: that explains nothing.
  bool isBroken(const Member& member) const {
    return !over_ && member.snapshot && instrument::isBroken(member.snapshot->process);
  }
  /// A call has ended with an error. Who has aborted the communicator, or left, goes on without it, while the job does.
  bool hasFailed(const RankSnapshot& rank, const CommunicatorView& view) const {
    return view.failure && (over_ || (view.live && rank.process != ProcessState::ended));
  }
  bool hasFailed(const Member& member) const { return member.view && hasFailed(*member.snapshot, *member.view); }
  bool hasFailed(const RankSnapshot& rank) const {
    return std::any_of(rank.log.communicators.begin(), rank.log.communicators.end(),
                       [&](const CommunicatorView& view) { return hasFailed(rank, view); });
  }
  static Nanoseconds ageOf(const Member& member, const CallRecord& call) { return member.snapshot->now - call.enter; }
  bool isStale(const Member& member, const CallRecord& call) const {
    return member.snapshot->process != ProcessState::ended && ageOf(member, call) >= patience_;
  }
  /// It is held up by somebody else: alive, and in a call for long.
  bool waitsItself(const Member& member) const {
    if (!member.snapshot || isBroken(member)) return false;
    if (waitsInMaking(*member.snapshot, patience_)) return true;
    const auto& calls = member.snapshot->log.inFlight;
    return std::any_of(calls.begin(), calls.end(),
                       [&](const CallRecord& call) { return member.isCaller(call) && isStale(member, call); });
  }

  static Finding startedWith(const JobCommunicator& communicator, Finding::Kind kind) {
    Finding finding;
    finding.kind = kind;
    finding.communicator = communicator.id;
    return finding;
  }
  static void addWaiting(Finding& finding, const Member& member, const CallRecord& call) {
    if (finding.waiting.empty()) finding.call = call;
    finding.waiting.push_back(member.name);
    finding.longest = std::max(finding.longest, ageOf(member, call));
  }
  void add(Finding finding) { report_.findings.push_back(std::move(finding)); }

  // A call has ended with an error: who called something else, or for whom it failed.
  bool judgeFailure(const JobCommunicator& communicator) {
    Finding finding = startedWith(communicator, Finding::Kind::failed);
    for (const Member& member : communicator.members)
      if (hasFailed(member)) addWaiting(finding, member, *member.view->failure);
    if (finding.waiting.empty()) return false;
    if (!isPointToPoint(finding.call.operation) && judgeMismatch(communicator, finding.call.sequence)) return true;
    finding.text = failuresText(communicator) +
                   fmt::format(", entered {} {}", textOf(finding.longest), over_ ? "before the end" : "ago");
    for (const Member& member : communicator.members) {
      if (!member.snapshot || !instrument::isBroken(member.snapshot->process) || hasFailed(member)) continue;
      // Whose calls failed on another communicator went for that.
      finding.cause = !hasFailed(*member.snapshot) || (finding.cause && !finding.culprits.empty());
      finding.culprits.push_back(member.name);
      finding.text += fmt::format("; {}: {}", member.name.text, words_.excuseOf(member));
    }
    add(std::move(finding));
    return true;
  }

  std::string failuresText(const JobCommunicator& communicator) const {
    std::map<std::string, std::vector<MemberName>> failed;
    for (const Member& member : communicator.members)
      if (hasFailed(member)) failed[words_.describe(*member.view->failure)].push_back(member.name);
    std::vector<std::string> texts;
    for (const auto& [call, members] : failed)
      texts.push_back(fmt::format("{} has failed on {}", call, namesOf(members)));
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  // The earliest collective that anybody waits in: later ones wait for it.
  void judgeCollectives(const JobCommunicator& communicator) {
    std::optional<std::uint64_t> number;
    for (const Member& member : communicator.members)
      for (const CallRecord* call : member.collectives)
        if (isStale(member, *call)) number = std::min(number.value_or(call->sequence), call->sequence);
    if (!number) return judgeEnqueued(communicator);
    Finding finding = startedWith(communicator, Finding::Kind::stuck);
    std::vector<const Member*> missing, broken;
    for (const Member& member : communicator.members) {
      if (const CallRecord* call = member.inFlight(*number)) {
        addWaiting(finding, member, *call);
        if (isBroken(member)) broken.push_back(&member);
      } else if (member.hasNotEntered(*number)) {
        missing.push_back(&member);
      }
    }
    // The oldest difference explains what came after it.
    if (judgeMismatch(communicator, *number) && missing.empty()) return;
    if (!missing.empty()) return addMissing(std::move(finding), communicator, missing);
    finding.cause = !broken.empty();
    finding.text = fmt::format("{} of {} members are in {} for {}, and all have entered it", finding.waiting.size(),
                               communicator.members.size(), words_.describe(finding.call), textOf(finding.longest));
    for (const Member* member : broken) {
      finding.culprits.push_back(member->name);
      finding.text += fmt::format("; {}: {}", member->name.text, words_.excuseOf(*member));
    }
    add(std::move(finding));
  }

  // Calls of the vendor's engine return at once: who has called less than others for long is waited for.
  void judgeEnqueued(const JobCommunicator& communicator) {
    std::uint64_t least = UINT64_MAX, most = 0;
    Nanoseconds quiet = Nanoseconds::max();
    for (const Member& member : communicator.members) {
      if (!member.view || !member.view->vendor) return;
      least = std::min(least, member.view->collectives);
      most = std::max(most, member.view->collectives);
      if (member.view->collectives > 0) quiet = std::min(quiet, member.snapshot->now - member.view->lastEnter);
    }
    if (least >= most || quiet < patience_) return;
    Finding finding = startedWith(communicator, Finding::Kind::notEntered);
    std::vector<const Member*> missing;
    for (const Member& member : communicator.members) {
      if (member.view->collectives == least) {
        missing.push_back(&member);
      } else if (const CallRecord* call = member.finished(least)) {
        addWaiting(finding, member, *call);
      }
    }
    if (!finding.waiting.empty()) addMissing(std::move(finding), communicator, missing);
  }

  void addMissing(Finding finding, const JobCommunicator& communicator, const std::vector<const Member*>& missing) {
    finding.kind = Finding::Kind::notEntered;
    finding.cause =
        std::any_of(missing.begin(), missing.end(), [&](const Member* each) { return !waitsItself(*each); });
    for (const Member* member : missing) finding.culprits.push_back(member->name);
    finding.text = fmt::format("{} {} not entered {} among {}, {} in it for {}", namesOf(finding.culprits),
                               missing.size() == 1 ? "has" : "have", textOf(finding.call), communicator.among,
                               othersWait(finding.waiting.size()), textOf(finding.longest));
    constexpr std::size_t mostExcuses = 4;
    for (std::size_t i = 0; i < std::min(mostExcuses, missing.size()); ++i)
      if (const std::string excuse = words_.excuseOf(*missing[i]); !excuse.empty())
        finding.text += missing.size() == 1 ? "; " + excuse : fmt::format("; {}: {}", missing[i]->name.text, excuse);
    add(std::move(finding));
  }

  // The first collective, up to `number`, that members called differently.
  bool judgeMismatch(const JobCommunicator& communicator, std::uint64_t number) {
    struct Callers {
      std::vector<MemberName> members;
      CallRecord call;
      Nanoseconds longest{0};  ///< of those that wait in it
    };
    std::map<std::uint64_t, std::map<Asked, Callers>> asked;
    for (const Member& member : communicator.members)
      for (const CallRecord* call : member.collectivesUpTo(number)) {
        Callers& callers = asked[call->sequence][askedBy(*call)];
        callers.members.push_back(member.name);
        callers.call = *call;
        if (call->leave == 0ns) callers.longest = std::max(callers.longest, ageOf(member, *call));
      }
    const auto first =
        std::find_if(asked.begin(), asked.end(), [](const auto& kinds) { return kinds.second.size() > 1; });
    if (first == asked.end()) return false;
    const auto& kinds = first->second;
    const auto usual = std::max_element(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) {
      return a.second.members.size() < b.second.members.size();
    });
    Finding finding = startedWith(communicator, Finding::Kind::mismatch);
    finding.call = usual->second.call;
    finding.waiting = usual->second.members;
    std::vector<std::string> others;
    for (auto kind = kinds.begin(); kind != kinds.end(); ++kind) {
      const Callers& callers = kind->second;
      finding.longest = std::max(finding.longest, callers.longest);
      if (kind == usual) continue;
      finding.culprits.insert(finding.culprits.end(), callers.members.begin(), callers.members.end());
      others.push_back(fmt::format("{} called {}", namesOf(callers.members), askedText(callers.call)));
    }
    finding.text = fmt::format("different calls among {}: {}, but {} called {}", communicator.among,
                               fmt::join(others, ", "), namesOf(finding.waiting), askedText(finding.call));
    add(std::move(finding));
    return true;
  }

  void judgeMessages(const JobCommunicator& communicator) {
    std::set<std::pair<const CallRecord*, const CallRecord*>> told;
    for (const Member& member : communicator.members)
      for (const CallRecord* call : member.messages) {
        if (!isStale(member, *call) || call->peer < 0 || call->peer >= std::ssize(communicator.members)) continue;
        const Member& peer = communicator.members[call->peer];
        if (!peer.view || peer.view->members.size() != communicator.members.size()) continue;
        const auto& counts = peer.view->members[member.name.rank];
        const bool sends = call->operation == Operation::send;
        if ((sends ? counts.received : counts.sent) <= call->sequence) {
          addUnmatched(communicator, member, *call, peer);
        } else if (const CallRecord* other = peer.partnerOf(*call, member);
                   other && told.insert(std::minmax(call, other)).second) {
          addPair(communicator, member, *call, peer, *other);
        }
      }
  }

  void addUnmatched(const JobCommunicator& communicator, const Member& member, const CallRecord& call,
                    const Member& peer) {
    Finding finding = startedWith(communicator, Finding::Kind::noPartner);
    addWaiting(finding, member, call);
    finding.culprits = {peer.name};
    finding.cause = !waitsItself(peer);
    finding.text =
        fmt::format("{} waits in {} for {}: {} has not entered the {} for it", member.name.text, words_.describe(call),
                    textOf(finding.longest), peer.name.text, call.operation == Operation::send ? "Recv" : "Send");
    if (const std::string excuse = words_.excuseOf(peer); !excuse.empty()) finding.text += "; " + excuse;
    add(std::move(finding));
  }

  // Both ends are there.
  void addPair(const JobCommunicator& communicator, const Member& member, const CallRecord& call, const Member& peer,
               const CallRecord& other) {
    const bool differs = call.count != other.count || call.type != other.type;
    Finding finding = startedWith(communicator, differs ? Finding::Kind::mismatch : Finding::Kind::stuck);
    addWaiting(finding, member, call);
    finding.text = fmt::format("{} is in {} for {}, {} in {}", member.name.text, words_.describe(call),
                               textOf(finding.longest), peer.name.text, words_.describe(other));
    if (differs) {
      finding.culprits = {peer.name};
      finding.text += ": they differ";
    } else {
      finding.waiting.push_back(peer.name);
      for (const Member* each : {&member, &peer})
        if (isBroken(*each)) {
          finding.culprits.push_back(each->name);
          finding.text += fmt::format("; {}: {}", each->name.text, words_.excuseOf(*each));
        }
      finding.cause = !finding.culprits.empty();
    }
    add(std::move(finding));
  }

  void judgeDeaths(const JobCommunicator& communicator) {
    for (const Member& member : communicator.members) {
      if (!member.snapshot || member.snapshot->process != ProcessState::dead) continue;
      const auto names = [&](const Finding& finding) {
        const auto& culprits = finding.culprits;
        return std::any_of(culprits.begin(), culprits.end(),
                           [&](const MemberName& name) { return name.text == member.name.text; });
      };
      if (!member.view || std::any_of(report_.findings.begin(), report_.findings.end(), names)) continue;
      Finding finding = startedWith(communicator, Finding::Kind::dead);
      finding.culprits = {member.name};
      finding.text = fmt::format("{} has died (process {} on {}), a member of {}", member.name.text,
                                 member.snapshot->log.pid, member.snapshot->log.identity.host, communicator.name);
      add(std::move(finding));
    }
  }

  // Causes first. A call that all are in and that does not end is the news only where nothing else is: its group may
  // have another call that waits, or the job is held.
  void weigh() {
    auto& findings = report_.findings;
    const auto isCause = [](const Finding& finding) { return finding.cause; };
    if (std::any_of(findings.begin(), findings.end(), isCause))
      std::erase_if(findings,
                    [](const Finding& finding) { return finding.kind == Finding::Kind::stuck && !finding.cause; });
    report_.circle = findings.size() > 1 && std::none_of(findings.begin(), findings.end(), isCause);
    std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
      return a.cause != b.cause ? a.cause : a.longest > b.longest;
    });
  }

  // How long before the others' last sign of life; only clocks of one host can be compared.
  std::string whenItDied(const RankSnapshot& rank) const {
    if (rank.process != ProcessState::dead) return "";
    Nanoseconds last = rank.now;
    for (const RankSnapshot& other : ranks_)
      if (other.log.identity.host == rank.log.identity.host) last = std::max(last, other.now);
    // The monitors wake ten times a second.
    const std::string when = last - rank.now < 500ms ? ""
                             : over_                 ? fmt::format(" {} before the last one", textOf(last - rank.now))
                                                     : fmt::format(" {} ago", textOf(last - rank.now));
    return fmt::format("died{}: ", when);
  }

  RankWhere where(const RankSnapshot& rank) const {
    RankWhere place;
    place.jobRank = rank.log.identity.jobRank;
    place.pid = rank.log.pid;
    place.host = rank.log.identity.host;
    place.process = rank.process;
    place.held = rank.isHeld();
    place.inFlight = rank.log.inFlight;
    place.makings = rank.log.makings;
    place.ranges = rank.ranges;
    place.now = rank.now;
    std::sort(place.inFlight.begin(), place.inFlight.end(),
              [](const CallRecord& a, const CallRecord& b) { return a.enter < b.enter; });
    place.text = whenItDied(rank) + words_.whereIs(rank, place.inFlight);
    return place;
  }

  static CommunicatorProgress progressOf(const JobCommunicator& communicator) {
    CommunicatorProgress progress{
        communicator.id, communicator.title, static_cast<int>(communicator.members.size()), {}, {}};
    std::map<std::uint64_t, std::vector<MemberName>> at;
    for (const Member& member : communicator.members) {
      if (member.view)
        at[member.view->collectives].push_back(member.name);
      else
        progress.unknown.push_back(member.name);
    }
    for (auto& [collectives, members] : at) progress.at.push_back({collectives, std::move(members)});
    return progress;
  }

  const std::span<const RankSnapshot> ranks_;
  const Nanoseconds patience_;
  const bool over_;
  const std::vector<JobCommunicator> communicators_;
  const HangWords words_;
  HangFindings report_;
};

}  // namespace

const char* nameOf(Finding::Kind kind) {
  constexpr const char* names[] = {"not-entered", "no-partner", "mismatch", "stuck", "failed", "dead"};
  return names[static_cast<int>(kind)];
}

HangFindings analyseHang(std::span<const RankSnapshot> ranks, Nanoseconds patience) {
  return Analysis(ranks, patience).run();
}

}  // namespace falcon::diagnose
