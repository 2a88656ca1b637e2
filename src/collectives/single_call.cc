#include "collectives/single_call.h"

#include <algorithm>

#include "collectives/direct_plan.h"
#include "collectives/group_driver.h"

namespace falcon::collectives {
namespace {

using State = DirectRunner::State;

/// Sleeps until the awaited rank rings, unless there is something to do after all.
template <class Runner>
Result<State> lookAgainAndSleep(Runner& runner, transport::NodeBoard& board, transport::Waiter& waiter) {
  static constexpr transport::WaitSource source{.kind = transport::WaitSource::Kind::doorbell};
  board.announceSleep(runner.awaited());
  auto state = runner.progress();
  if (state && *state == State::stuck) waiter.sleep({&source, 1}, longestSleep);
  board.withdrawSleep();
  return state;
}

/// `runner`: a DirectRunner or DirectMessages.
template <class Runner>
Status drive(Runner& runner, LocalMember& member, const Waiting& waiting) {
  // Whoever still reads this rank's buffers must not take what they hold later for the data.
  const auto failed = [&](const Error& error) -> Status {
    member.direct->board().giveUp();
    return error;
  };
  auto state = runner.progress();
  if (state && *state == State::finished) return {};
  Patience patience = waiting.patience(member.direct->coresSuffice());
  while (state && *state != State::finished) {
    if (member.hooks.hold) member.hooks.hold->pass();
    if (const Status healthy = member.health(); !healthy) return failed(healthy.error());
    if (*state == State::advanced) patience.reset();
    if (*state == State::advanced || patience.again()) {
      state = runner.progress();
      continue;
    }
    // The ticket comes before the last look at what else could end the wait.
    waiting.waiter.prepare();
    if (const Status healthy = member.health(); !healthy) return failed(healthy.error());
    state = lookAgainAndSleep(runner, member.direct->board(), waiting.waiter);
  }
  if (!state) return failed(member.fail(state.error()));
  return {};
}

/// Until all is done that goes over connections; the others may go the long way.
template <class Run>
Status driveConnections(Run& run, LocalMember& member, const Waiting& waiting) {
  const auto failed = [&](const Error& error) -> Status {
    if (member.direct) member.direct->board().giveUp();
    return error;
  };
  // To yield often helps where the peers share memory; a socket's reader is woken at once when something comes.
  Patience patience = waiting.patience(member.direct && member.direct->coresSuffice());
  for (;;) {
    // The ticket comes before the last look at what could end the wait.
    waiting.waiter.prepare();
    if (member.hooks.hold) member.hooks.hold->pass();
    if (const Status healthy = member.health(); !healthy) return failed(healthy.error());
    const auto moved = run.progress();
    if (!moved) return failed(member.fail(moved.error()));
    if (run.finished()) return {};
    if (*moved) patience.reset();
    if (*moved || (member.direct && patience.again())) continue;
    if (member.direct)
      waiting.waiter.sleep(run.waitSources(), longestSleep);
    else
      waiting.wait(run.waitSources(), longestSleep);
  }
}

/// At a glance: what checkCall() would not object to.
bool isSoundMessage(const MemberShape& shape, const Call& call) {
  const void* const buffer = call.operation == Operation::send ? call.send : call.receive;
  return static_cast<unsigned>(call.peer) < static_cast<unsigned>(shape.size) && call.count <= surelyFittingCount &&
         buffer;
}

Status exchange(LocalMember& member, const Call& call, const Waiting& waiting) {
  member.messages.begin(member.ports);
  if (const Status added = member.messages.addExchange(member.shape, call); !added) return member.fail(added.error());
  return driveConnections(member.messages, member, waiting);
}

/// For a call like the last one; null: it is not like it, or its ring may be another.
std::optional<Status> runAgain(LocalMember& member, const Call& call, const Waiting& waiting) {
  const auto& direct = member.lastDirect;
  const auto& connected = member.lastConnected;
  const bool likeDirect = direct && isLike(direct->call, call);
  if (!likeDirect && !(connected && isLike(connected->call, call))) return {};
  // The check takes as long as a quarter of the shortest calls.
  if (!call.send || !call.receive || call.send == call.receive) {
    if (const Status possible = checkBuffers(member.shape, call); !possible) return possible;
  }
  const std::uint64_t number = member.nextCollective.load(std::memory_order_relaxed);
  if (likeDirect) {
    if (!member.rings.startWithoutRing(number) && !member.rings.start(number)) return {};
    member.nextCollective.store(number + 1, std::memory_order_relaxed);
    member.lastDirect->runner.again(call);
    return drive(member.lastDirect->runner, member, waiting);
  }
  if (!member.rings.startOn(connected->ring, number)) return {};
  if (!connected->asMessages && !member.steps.again(call)) return {};
  member.nextCollective.store(number + 1, std::memory_order_relaxed);
  if (connected->asMessages) return exchange(member, call, waiting);
  return driveConnections(member.steps, member, waiting);
}

/// Measured or compared calls go the long way.
bool mayGoTheShortWay(const LocalMember& member) {
  return !member.shape.checksCalls && !(member.hooks.transfers && member.hooks.transfers->enabled());
}

}  // namespace

std::optional<Status> runAlone(LocalMember& member, const Call& call, const Waiting& waiting) {
  if (!mayGoTheShortWay(member) || isPointToPoint(call.operation)) return {};
  if (const Status healthy = member.health(); !healthy) return healthy;
  // A tuner is asked for each call.
  if (!member.tuner) [[likely]] {
    if (auto done = runAgain(member, call, waiting)) return done;
  }
  const std::uint64_t number = member.nextCollective.load(std::memory_order_relaxed);
  if (const Status possible = checkCall(member.shape, call); !possible) return possible;
  RingSchedule::Order ring = member.rings.start(number);
  if (!ring) return {};
  const TunedWay tuned = member.tuner ? tunedWay(*member.tuner, member.shape, call) : TunedWay();
  std::optional<DirectRunner> runner;
  if (member.direct && !tuned.choosesAlgorithm()) runner = planDirect(*member.direct, member.shape, call);
  member.nextCollective.store(number + 1, std::memory_order_relaxed);
  if (runner) {
    auto& last = member.lastDirect;
    last = LastDirect{call, std::move(*runner)};
    return drive(last->runner, member, waiting);
  }
  const Way way = chooseWay(member.shape, call, tuned);
  member.lastConnected.reset();
  if (way.algorithm) member.steps.begin(member.ports, member.shape, call, way, *ring);
  const Status done = way.algorithm ? driveConnections(member.steps, member, waiting) : exchange(member, call, waiting);
  if (done && call.reduction != ReduceOp::preMulSum)
    member.lastConnected = LastConnected{call, std::move(ring), way.algorithm == nullptr};
  return done;
}

bool areCollectives(const LocalMember& member, std::span<const Submission> submissions) {
  return mayGoTheShortWay(member) && std::all_of(submissions.begin(), submissions.end(), [&](const Submission& one) {
           return one.engine == submissions[0].engine && !isPointToPoint(one.call.operation);
         });
}

bool areMessages(const LocalMember& member, std::span<const Submission> submissions) {
  // The driver looks at all of them in every turn.
  constexpr std::size_t most = 64;
  if (!mayGoTheShortWay(member) || submissions.size() > most) return false;
  return std::all_of(submissions.begin(), submissions.end(), [&](const Submission& one) {
    return one.engine == submissions[0].engine && isPointToPoint(one.call.operation) && !isToOneself(member, one.call);
  });
}

Status runMessages(LocalMember& member, std::span<const Submission> submissions, const Waiting& waiting) {
  if (const Status healthy = member.health(); !healthy) return healthy;
  for (const Submission& one : submissions) {
    if (isSoundMessage(member.shape, one.call)) [[likely]]
      continue;
    if (const Status possible = checkCall(member.shape, one.call); !possible) return possible;
  }
  const bool direct = member.direct && member.direct->mail();
  if (direct)
    member.directMessages.begin();
  else
    member.messages.begin(member.ports);
  for (const Submission& one : submissions) {
    ++(one.call.operation == Operation::send ? member.sent : member.received)[one.call.peer];
    if (direct)
      member.directMessages.add(*member.direct, one.call);
    else if (const Status added = member.messages.add(member.shape, one.call); !added)
      return member.fail(added.error());
  }
  return direct ? drive(member.directMessages, member, waiting) : driveConnections(member.messages, member, waiting);
}

}  // namespace falcon::collectives
