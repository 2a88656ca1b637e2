#include "api/communicator.h"

#include <thread>

#include "api/guard.h"
#include "base/clock.h"
#include "base/contained.h"
#include "base/library_thread.h"
#include "base/log.h"

ncclComm::ncclComm(falcon::api::Settings configured)
    : headMagic(headMark),
      generation(falcon::api::Process::generation()),
      settings(std::move(configured)),
      tailMagic(tailMark) {}

ncclComm::~ncclComm() {
  (void)end();
  headMagic.store(0, std::memory_order_relaxed);
  tailMagic = 0;
}

falcon::Status ncclComm::end() {
  if (!engine) return {};
  if (job) job->remove(*engine);
  const falcon::Status ended = engine->end();
  host = nullptr;
  vendors = nullptr;
  engine.reset();
  replaced.reset();
  return ended;
}

void ncclComm::start(std::shared_ptr<falcon::control::Job> inJob, int placeInLog) {
  ranks = static_cast<unsigned>(engine->size());
  job = std::move(inJob);
  place = placeInLog;
  if (job) hooks = job->hooks();
  watched = hooks.hold || hooks.calls;
  if (host) driver = falcon::api::Process::instance().driver();
  plain = !watched && !driver && settings.blocking && host;
  direct = settings.blocking && vendors;
  state.store(State::ready, std::memory_order_release);
}

void ncclComm::adopt(std::unique_ptr<falcon::collectives::HostCommunicator> other,
                     std::unique_ptr<falcon::CallCounts> itsCounts) noexcept {
  if (job) job->remove(*engine);
  host = other.get();
  // Another thread may be inside the one before: it asks for errors, or aborts.
  std::unique_ptr<falcon::Engine> next = std::move(other);
  engine.swap(next);
  replaced = std::move(next);
  ranks = static_cast<unsigned>(engine->size());
  counts = std::move(itsCounts);
  place = falcon::noPlace;
  if (!job) return;
  // Copying what it is told may find no memory either.
  falcon::contained(
      [&] {
        place = job->add({host, host, host->members(), host->network().secret(), settings.vendor.name, counts.get()});
      },
      [](const char*) {});
}

void ncclComm::fail(falcon::Error error) {
  startError = std::move(error);
  state.store(State::failed, std::memory_order_release);
}

namespace falcon::api {

void CommunicatorUse::awaitEnding(const ncclComm& communicator) {
  while (communicator.references.load(std::memory_order_acquire) >= ending) std::this_thread::yield();
}

void CommunicatorUse::release(ncclComm& communicator, std::int64_t weight) {
  if (communicator.references.fetch_sub(weight, std::memory_order_acq_rel) == weight) delete &communicator;
}

Status requireOurs(const char* function, const ncclComm* communicator) {
  if (!communicator) return log::decided(Error::invalidArgument("{}: comm is NULL", function));
  if (!ncclComm::isAt(communicator))
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
  heavyFence();
  // Either a plain call that begins now sees that, or it is seen here.
  if (!communicator.inside.load(std::memory_order_acquire)) return CommunicatorUse::release(communicator);
  // It ends soon, but an abort returns at once. Nothing is freed where no thread can be had.
  const auto releaseLater = [&communicator] {
    while (communicator.inside.load(std::memory_order_acquire)) std::this_thread::sleep_for(1ms);
    CommunicatorUse::release(communicator);
  };
  (void)withoutExceptions("the last call of a communicator", [&]() -> Status {
    libraryThread("nccl-falcon-end", releaseLater).detach();
    return {};
  });
}

}  // namespace falcon::api
