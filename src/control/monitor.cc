#include "control/monitor.h"

#include <unistd.h>

#include <thread>
#include <utility>

#include "base/contained.h"
#include "base/job_rank.h"
#include "base/log.h"
#include "transport/plugin/net_snapshot.h"

namespace falcon::control {
namespace {

constexpr Nanoseconds tickInterval = 100ms;
constexpr Nanoseconds netInterval = 500ms;
constexpr Nanoseconds closingInterval = 2ms;  // while others wait for this process to be held

}  // namespace

void Monitor::stop() {
  stop_.store(true);
  first_.isGivenUp();
  parts_.bus.wake();
}

void Monitor::post(std::function<void(Member& member)> work) {
  {
    const std::lock_guard lock(postedMutex_);
    posted_.push_back(std::move(work));
  }
  parts_.bus.wake();
}

void Monitor::ask(std::uint64_t number) {
  post([this, number](Member&) { send(number); });
}

void Monitor::send(std::uint64_t number) {
  if (member_->isOff()) return failRequests();
  if (const auto message = parts_.requests.message(number)) parts_.bus.toController(encode(*message));
}

void Monitor::failRequests() {
  parts_.requests.failAll(Error::invalidUsage("Falcon was switched off in this job"));
}

/// What the monitor does step by step. A step that throws (no memory, mostly) ends neither the thread nor the job.
template <class Step>
bool Monitor::attempt(const Step& step) noexcept {
  return contained(step, [this](const char* problem) {
    failed_ = true;
    if (failureSaid_) return;
    log::notice("Falcon's monitor failed: {}; Falcon switches itself off in this job, which goes on", problem);
    failureSaid_ = true;
  });
}

// A member always, the controller too on the lowest rank.
void Monitor::run() {
  // What comes by the bus before the first communicator stays there.
  if (!first_.await(tickInterval, [this] { showHeartbeat(); })) return;
  bool takesPart = false;
  while (!stop_.load() && !(takesPart = attempt([this] { takePart(); }))) {
    attempt([this] { failRequests(); });
    std::this_thread::sleep_for(tickInterval);
  }
  if (!takesPart) return;
  while (!stop_.load()) work();
  attempt([this] { office_->end(); });
  attempt([this] { member_->end(); });
}

void Monitor::takePart() {
  Introduce identity;
  identity.jobRank = jobRankFromEnvironment();
  identity.host = hostName();
  identity.pid = getpid();
  identity.address = parts_.reactor.address().host();
  identity.clockDomain = clockDomain();
  identity.processors = static_cast<std::int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  member_ =
      std::make_unique<Member>(MemberParts{parts_.bus, parts_.clock, parts_.files.log(), parts_.trap, parts_.transfers,
                                           parts_.communicators, parts_.plans, decisions_, parts_.benchmark,
                                           parts_.files.ranges(), parts_.gpu, parts_.launched, &stop_},
                               identity);
  authority_.emplace(parts_.bus.self());
  office_.emplace(parts_.jobName, parts_.bus, parts_.clock, parts_.files, decisions_);
  office_->take();
}

void Monitor::work() {
  std::vector<bootstrap::BusMessage> messages;
  attempt([&] { messages = parts_.bus.take(member_->isClosing() ? closingInterval : tickInterval); });
  if (officeDue_) attempt([this] { changeOffice(); });
  for (const bootstrap::BusMessage& message : messages) attempt([&] { dispatch(message); });
  attempt([this] { runPosted(); });
  attempt([this] { member_->tick(); });
  attempt([this] { obeyCommands(); });
  attempt([this] {
    if (office_->controller()) office_->controller()->tick();
  });
  attempt([this] { showState(); });
  attempt([this] { showNet(); });
  if (failed_) attempt([this] { goOff(); });
}

void Monitor::runPosted() {
  std::vector<std::function<void(Member & member)>> work;
  {
    const std::lock_guard lock(postedMutex_);
    work.swap(posted_);
  }
  for (const auto& each : work) attempt([&] { each(*member_); });
}

// By way of the controller, as `falcon off` does: first it decides what it has proposed, so that nobody waits for it.
// The member goes on until then.
void Monitor::goOff() {
  member_->giveUp();
  if (member_->isOff()) failRequests();
  failed_ = false;
}

void Monitor::changeOffice() {
  officeDue_ = true;  // until all of it is done
  office_->take();
  if (const auto letGo = std::exchange(letGo_, std::nullopt); letGo && office_->controller())
    office_->controller()->inherit(letGo->asked, letGo->held);
  member_->newController();
  // The old one's word may never come.
  for (const std::uint64_t number : parts_.requests.again()) send(number);
  officeDue_ = false;
}

void Monitor::dispatch(const bootstrap::BusMessage& bus) {
  using Kind = bootstrap::BusMessage::Kind;
  if (bus.kind == Kind::controllerChanged) {
    authority_->changed(bus.from);
    return changeOffice();
  }
  if (bus.kind == Kind::left) {
    if (const auto letGo = member_->left(bus.from)) letGo_ = letGo;
    if (office_->controller()) office_->controller()->left(bus.from);
    return;
  }
  if (bus.kind != Kind::text) return;
  const auto message = decode(bus.bytes);
  if (!message) {
    log::warn("a message of {} bytes on the bus is not one of ours; dropped", bus.bytes.size());
    return;
  }
  // Orders come from the controller, everything else goes to it; the controller's own process gets both.
  if (isOrder(*message))
    obey(bus.from, *message);
  else if (office_->controller())
    office_->controller()->handle(bus.from, *message);
}

void Monitor::obey(ProcessId from, const Message& order) {
  const Authority::Word word = authority_->wordOf(from, order);
  if (word == Authority::Word::forged && !std::exchange(forgedSaid_, true))
    log::warn(
        "process {:x}, which is not the controller of this job, gave an order; it was dropped, as others like it are",
        from);
  if (word != Authority::Word::obeyed) return;
  if (const auto* answer = std::get_if<SuspendAnswer>(&order)) return parts_.requests.answer(*answer);
  if (const auto* examined = std::get_if<Examined>(&order))
    return parts_.files.keepExamination(examined->problem, examined->content);
  member_->handle(from, order);
  if (member_->isOff()) failRequests();
}

void Monitor::obeyCommands() {
  using instrument::JobCommand;
  auto& given = parts_.files.log().header().command;
  const std::uint32_t command = given.load(std::memory_order_acquire);
  const auto what = static_cast<JobCommand>(command & ((1U << instrument::jobCommandBits) - 1));
  if (what == JobCommand::none || member_->isOff()) return;
  if (what == JobCommand::off) {
    if (!std::exchange(asked_, true)) parts_.bus.toController(encode(RequestOff{}));
    return;
  }
  // Once each; what comes of it shows in the state of all ranks.
  std::uint32_t seen = command;
  given.compare_exchange_strong(seen, 0, std::memory_order_acq_rel);
  const double limit = command >> instrument::jobCommandBits;
  SuspendRequests& requests = parts_.requests;
  if (what == JobCommand::suspend) parts_.bus.toController(encode(AskSuspend{requests.newNumber(), limit}));
  if (what == JobCommand::resume) parts_.bus.toController(encode(AskResume{requests.newNumber()}));
  if (what == JobCommand::examine) parts_.bus.toController(encode(AskExamination{requests.newNumber()}));
}

void Monitor::showHeartbeat() {
  parts_.files.log().header().heartbeat.store(parts_.clock.now().count(), std::memory_order_relaxed);
}

void Monitor::showState() {
  showHeartbeat();
  parts_.files.log().header().held.store(parts_.trap.closed() ? 1 : 0, std::memory_order_relaxed);
  office_->showState();
}

void Monitor::showNet() {
  if (parts_.clock.now() - netShown_ < netInterval) return;
  netShown_ = parts_.clock.now();
  const auto snapshot = transport::net::netSnapshot();
  if (!snapshot) return;
  parts_.files.keepNetState(transport::net::encode(*snapshot));
  parts_.transfers.note(*snapshot);
}

}  // namespace falcon::control
