#include "api/communicator.h"

#include "api/process.h"
#include "base/log.h"

namespace {
constexpr std::uint64_t headMark = 0x6e6f636c61466c63, tailMark = 0x636c466c61636f6e;
}

ncclComm::ncclComm(falcon::api::Settings configured)
    : headMagic(headMark),
      generation(falcon::api::Process::generation()),
      settings(std::move(configured)),
      tailMagic(tailMark) {}

ncclComm::~ncclComm() {
  if (job && engine) job->remove(*engine);
  engine.reset();
  headMagic.store(0, std::memory_order_relaxed);
  tailMagic = 0;
}

void ncclComm::start(std::unique_ptr<falcon::Engine> made, std::shared_ptr<falcon::control::Job> inJob) {
  engine = std::move(made);
  job = std::move(inJob);
  if (job) hooks = job->hooks();
  watched = hooks.hold || hooks.calls;
  driver = falcon::api::Process::instance().driver();
  sent.assign(engine->size(), 0);
  received.assign(engine->size(), 0);
  state.store(State::ready, std::memory_order_release);
}

void ncclComm::fail(falcon::Error error) {
  startError = std::move(error);
  state.store(State::failed, std::memory_order_release);
}

namespace falcon::api {

void CommunicatorUse::release(ncclComm& communicator) {
  if (communicator.references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &communicator;
}

Status requireOurs(const char* function, const ncclComm* communicator) {
  if (!communicator) return log::decided(Error::invalidArgument("{}: comm is NULL", function));
  const bool aligned = reinterpret_cast<std::uintptr_t>(communicator) % alignof(ncclComm) == 0;
  if (!aligned || communicator->headMagic.load(std::memory_order_relaxed) != headMark ||
      communicator->tailMagic != tailMark)
    return log::decided(Error::invalidArgument("{}: comm is not a communicator (freed or overwritten?)", function));
  if (communicator->generation != Process::generation())
    return log::decided(
        Error::invalidUsage("{}: comm was made before fork(); a child must make communicators of its own", function));
  return {};
}

void BackgroundOutcome::set(const Status& status) {
  const std::lock_guard lock(mutex_);
  status_ = status;
}

Status BackgroundOutcome::get() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

Result<CommunicatorUse> requireReady(const char* function, ncclComm* communicator) {
  if (const Status ours = requireOurs(function, communicator); !ours) return ours.error();
  const auto state = communicator->state.load(std::memory_order_acquire);
  if (state == ncclComm::State::ready) [[likely]]
    return CommunicatorUse(*communicator);
  if (state == ncclComm::State::working)
    return log::decided(Error::invalidArgument(
        "{}: the last call of comm is still in progress; poll ncclCommGetAsyncError until ncclSuccess", function));
  return requireMade(function, communicator);
}

Result<CommunicatorUse> requireMade(const char* function, ncclComm* communicator) {
  if (const Status ours = requireOurs(function, communicator); !ours) return ours.error();
  const auto state = communicator->state.load(std::memory_order_acquire);
  if (state == ncclComm::State::ready || state == ncclComm::State::working) return CommunicatorUse(*communicator);
  if (state == ncclComm::State::starting)
    return log::decided(Error::invalidArgument(
        "{}: comm is still being set up; poll ncclCommGetAsyncError until ncclSuccess", function));
  return log::decided(
      Error::invalidArgument("{}: comm could not be set up: {}", function, communicator->startError->message()));
}

void takeFromApplication(ncclComm& communicator) {
  communicator.headMagic.store(0, std::memory_order_relaxed);
  CommunicatorUse::release(communicator);
}

}  // namespace falcon::api
