#include "collectives/single_call.h"

#include "collectives/direct_plan.h"
#include "collectives/group_driver.h"
#include "collectives/patience.h"

namespace falcon::collectives {
namespace {

using State = DirectRunner::State;

/// Sleeps until the awaited rank rings, unless there is something to do after all.
Result<State> lookAgainAndSleep(DirectRunner& runner, transport::NodeBoard& board, transport::Waiter& waiter) {
  static constexpr transport::WaitSource source{.kind = transport::WaitSource::Kind::doorbell};
  board.announceSleep(runner.awaited());
  auto state = runner.progress();
  if (state && *state == State::stuck) waiter.sleep({&source, 1}, longestSleep);
  board.withdrawSleep();
  return state;
}

Status drive(DirectRunner& runner, LocalMember& member, transport::Waiter& waiter) {
  // Whoever still reads this rank's buffers must not take what they hold later for the data.
  const auto failed = [&](const Error& error) -> Status {
    member.direct->board().giveUp();
    return error;
  };
  Patience patience(member.direct->coresSuffice());
  auto state = runner.progress();
  while (state && *state != State::finished) {
    if (member.hooks.hold) member.hooks.hold->passWait();
    if (const Status healthy = member.health(); !healthy) return failed(healthy.error());
    if (*state == State::advanced) patience.reset();
    if (*state == State::advanced || patience.again()) {
      state = runner.progress();
      continue;
    }
    // The ticket comes before the last look at what else could end the wait.
    waiter.prepare();
    if (const Status healthy = member.health(); !healthy) return failed(healthy.error());
    state = lookAgainAndSleep(runner, member.direct->board(), waiter);
  }
  if (!state) return failed(member.fail(state.error()));
  return {};
}

}  // namespace

std::optional<Status> runAlone(LocalMember& member, const Call& call, transport::Waiter& waiter) {
  if (!member.direct || member.shape.checksCalls || (member.hooks.transfers && member.hooks.transfers->enabled()))
    return {};
  if (const Status healthy = member.health(); !healthy) return healthy;
  if (const Status possible = checkCall(member.shape, call); !possible) return possible;
  auto runner = planDirect(*member.direct, member.shape, call);
  const std::uint64_t number = member.nextCollective.load(std::memory_order_relaxed);
  if (!runner || !member.rings.start(number)) return {};
  member.nextCollective.store(number + 1, std::memory_order_relaxed);
  return drive(*runner, member, waiter);
}

}  // namespace falcon::collectives
