#include "diagnose/hang_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace falcon::diagnose {

using instrument::ProcessState;
using instrument::RankSnapshot;

namespace {

// While a trap closes, the state does not say yet what for.
const char* whyHeld(instrument::JobState state) {
  if (state == instrument::JobState::suspended) return "suspended, by `falcon suspend` or ncclFalconSuspend";
  return state == instrument::JobState::validating ? "held by Falcon for a validation" : "held by Falcon";
}

}  // namespace

std::string textOf(const CallRecord& call) {
  return fmt::format("{} #{} of {} x {}", falcon::nameOf(call.operation), call.sequence, call.count,
                     falcon::nameOf(call.type));
}

std::string askedText(const CallRecord& call) {
  switch (call.operation) {
    case Operation::allReduce:
    case Operation::reduceScatter:
      return fmt::format("{} ({})", textOf(call), falcon::nameOf(call.reduction));
    case Operation::reduce:
      return fmt::format("{} ({}, root {})", textOf(call), falcon::nameOf(call.reduction), call.peer);
    case Operation::broadcast:
    case Operation::gather:
    case Operation::scatter:
      return fmt::format("{} (root {})", textOf(call), call.peer);
    default:
      return textOf(call);
  }
}

std::string textOf(Nanoseconds duration) {
  const double passed = seconds(duration);
  return passed < 120 ? fmt::format("{:.1f} s", passed)
                      : fmt::format("{} min {} s", static_cast<long>(passed) / 60, static_cast<long>(passed) % 60);
}

std::string namesOf(const std::vector<MemberName>& members) {
  constexpr std::size_t most = 8;
  const bool byNumber =
      std::all_of(members.begin(), members.end(), [](const MemberName& member) { return member.jobRank >= 0; });
  std::vector<std::string> texts;
  for (const MemberName& member : members)
    texts.push_back(byNumber && members.size() > 1 ? std::to_string(member.jobRank) : member.text);
  const std::size_t more = texts.size() > most ? texts.size() - most : 0;
  texts.resize(texts.size() - more);
  return fmt::format("{}{}{}", byNumber && members.size() > 1 ? "ranks " : "", fmt::join(texts, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string othersWait(std::size_t number) {
  return number == 1 ? "1 other waits" : fmt::format("{} others wait", number);
}

std::string rangeText(const RankSnapshot& rank, std::uint32_t thread) {
  std::vector<std::string> names;
  Nanoseconds begin{0};
  for (const instrument::OpenRange& range : rank.ranges) {
    if (range.thread != thread) continue;
    names.push_back(range.name);
    begin = range.begin;
  }
  const auto mainThread = static_cast<std::uint32_t>(rank.log.pid);
  if (names.empty()) {
    const std::string main = thread == mainThread ? "" : rangeText(rank, mainThread);
    return main.empty() ? "" : "; its main thread is" + main.substr(1);
  }
  return fmt::format(", in range {} for {}", fmt::join(names, " > "), textOf(rank.now - begin));
}

std::string HangWords::describe(const instrument::MakingView& making) const {
  const std::string name = making.name.empty() ? "" : fmt::format(" ({})", making.name);
  if (making.kind == instrument::MakingKind::init)
    return fmt::format("{} of {} ranks{}", nameOf(making.kind), making.size, name);
  std::string parent = instrument::CommunicatorNames().nameOf(making.key);
  for (const JobCommunicator& communicator : communicators_)
    if (communicator.id == making.key) parent = communicator.name;
  return fmt::format("{}{} of {}", nameOf(making.kind), name, parent);
}

std::string HangWords::outsideText(const RankSnapshot& rank) const {
  if (!rank.log.makings.empty()) {
    const auto& making = rank.log.makings.front();
    return fmt::format("in {} for {}", describe(making), textOf(rank.now - making.enter));
  }
  if (rank.log.latest.empty())
    return "outside of the library" + rangeText(rank, static_cast<std::uint32_t>(rank.log.pid));
  const CallRecord& last = rank.log.latest.back();
  return fmt::format("outside of the library for {}, after {}{}", textOf(rank.now - last.leave), textOf(last),
                     rangeText(rank, last.thread));
}

std::string HangWords::describe(const CallRecord& call) const {
  for (const JobCommunicator& communicator : communicators_) {
    if (communicator.id != call.communicator) continue;
    const bool hasPeer =
        isPointToPoint(call.operation) && call.peer >= 0 && call.peer < std::ssize(communicator.members);
    const std::string peer = hasPeer ? fmt::format(" {} {}", call.operation == Operation::send ? "to" : "from",
                                                   communicator.members[call.peer].name.text)
                                     : "";
    return fmt::format("{}{} among {}", textOf(call), peer, communicator.among);
  }
  return fmt::format("{} among {}", textOf(call), instrument::CommunicatorNames().membersOf(call.communicator));
}

std::string HangWords::excuseOf(const Member& member) const {
  if (!member.snapshot) return "";
  const RankSnapshot& rank = *member.snapshot;
  if (rank.process == ProcessState::ended) return "it has left the job";
  const bool dead = rank.process == ProcessState::dead;
  std::string process;
  if (dead) process = fmt::format("its process has died ({} on {}), ", rank.log.pid, rank.log.identity.host);
  if (rank.process == ProcessState::stopped) process = fmt::format("its process ({}) is stopped, ", rank.log.pid);
  if (member.view && !member.view->live) return process + "it has destroyed or aborted the communicator";
  const CallRecord* oldest = nullptr;
  for (const CallRecord& call : rank.log.inFlight)
    if (member.isCaller(call) && (!oldest || call.enter < oldest->enter)) oldest = &call;
  process += dead ? "it was" : "it is";
  if (!oldest) return fmt::format("{} {}", process, outsideText(rank));
  return fmt::format("{} in {} for {}{}", process, describe(*oldest), textOf(rank.now - oldest->enter),
                     rangeText(rank, oldest->thread));
}

std::string HangWords::whereIs(const RankSnapshot& rank, const std::vector<CallRecord>& inFlight) const {
  if (rank.process == ProcessState::ended) return "has left the job";
  std::string text;
  if (inFlight.empty()) {
    text += outsideText(rank);
  } else {
    text += fmt::format("in {} for {}{}", describe(inFlight.front()), textOf(rank.now - inFlight.front().enter),
                        rangeText(rank, inFlight.front().thread));
    if (inFlight.size() > 1) text += fmt::format(", and {} more", inFlight.size() - 1);
  }
  if (rank.log.held) text += fmt::format(" ({})", whyHeld(rank.log.state));
  return text;
}

}  // namespace falcon::diagnose
