// A member's part in holding the job.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/parameters.h"
#include "control/drain_wire.h"
#include "control/member.h"
#include "control/trap_callbacks.h"
#include "transport/local_ports.h"

namespace falcon::control {

void Member::letGo() {
  parts_.trap.open();
  if (std::exchange(trapId_, 0) != 0) disturbed();
  if (std::exchange(heldSaid_, false)) TrapCallbacks::ofProcess().call(TrapCallbacks::Held::no, 0ns);
}

void Member::giveUp() {
  heldBy_ = 0;
  letGo();
  if (!off_) say(RequestOff{});
}

// The controller tells of others; of its own death only the bus does. One that goes in order opens the trap first.
std::optional<Member::LetGo> Member::left(ProcessId process) {
  if (heldBy_ == 0 || process != heldBy_) return std::nullopt;
  const LetGo done{heldAsked_, parts_.clock.now() - disturbedFrom_};
  letGo();
  heldBy_ = 0;
  goOnWithout("the controller");
  return done;
}

void Member::goOnWithout(const char* whoDied) {
  if (parameters::trapDeath.value() == 0)
    return log::notice("{} died while the job was held: this process goes on until it misses it", whoDied);
  log::warn("{} died while the job was held: all communicators are aborted, as NCCL_FALCON_TRAP_DEATH=abort asks for",
            whoDied);
  parts_.communicators.withAll([](std::vector<KnownCommunicator>& known) {
    for (KnownCommunicator& each : known) (void)each.membership->abort();  // who cannot has said so
  });
}

void Member::tickTrap() {
  parts_.trap.expire();
  if (!parts_.trap.closed()) {  // it opened itself: nobody came back
    heldBy_ = 0;
    return letGo();
  }
  // A communicator of the vendor's may have been made since the order.
  if (!trapReported_ && !parts_.trap.draining() && hasVendorsCommunicators()) drain();
  // Who has not called for so long does something else, such as to wait for a thread that is held.
  const double fewestSeconds = iterationIsSure_ ? 0.25 : 1;
  const Nanoseconds recent = fromSeconds(std::max(fewestSeconds, 3 * iterationSeconds_));
  if (parts_.trap.draining()) return sayWhereItDrains(recent);
  if (trapReported_ || !parts_.trap.holdsAll(recent)) return;
  trapReported_ = true;
  say(TrapState{trapId_, true});
}

void Member::drain() {
  parts_.trap.drain();
  trapReported_ = false;
  transport::ringOwnDoorbell();  // who was frozen goes on to its next call
}

void Member::sayWhereItDrains(Nanoseconds recent) {
  const auto news = parts_.trap.takeNews(recent, [this] { return !parts_.launched || parts_.launched->isDone(); });
  if (!news) return;
  trapReported_ = news->held;
  DrainState state{trapId_, news->report.version, news->report.below, news->held, toWire(news->report.entered),
                   {},      news->working};
  for (const DrainGate::Part& part : news->parts) state.parts.push_back({part.communicator, part.rank});
  say(state);
}

void Member::order(const CloseTrap& order) {
  // Said again, since a communicator is the vendor's, of which the controller had not heard.
  if (order.trap == trapId_ && parts_.trap.closed()) {
    if (order.drain && !parts_.trap.draining()) drain();
    return;
  }
  trapId_ = lastTrap_ = order.trap;
  trapReported_ = false;
  disturbedFrom_ = parts_.clock.now();
  disturbedUntil_ = Nanoseconds::max();
  heldBy_ = parts_.bus.controller();
  const double seconds = std::min(order.limitSeconds, falcon::seconds(longestTrap));  // also of a hostile message
  const Nanoseconds limit = fromSeconds(std::max(seconds, 0.0));
  // Told before anybody is held, so that a watchdog can be stopped in time.
  heldSaid_ = true;
  heldAsked_ = order.asked;
  TrapCallbacks::ofProcess().call(order.asked ? TrapCallbacks::Held::suspended : TrapCallbacks::Held::tested, limit);
  parts_.trap.close(limit, order.drain || hasVendorsCommunicators());
  transport::ringOwnDoorbell();  // who sleeps in a wait loop looks at the trap now
}

void Member::order(const DrainTargets& order) {
  if (order.trap == trapId_) parts_.trap.order(order.version, fromWire(order.targets));
}

void Member::order(const OpenTrap& order) {
  if (order.trap != lastTrap_) return;
  heldBy_ = 0;
  letGo();
  if (order.someoneDied) goOnWithout("a rank");
}

}  // namespace falcon::control
