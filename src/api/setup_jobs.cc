#include "api/setup_jobs.h"

#include <atomic>
#include <thread>

#include "api/guard.h"
#include "base/library_thread.h"
#include "base/log.h"

namespace falcon::api {
namespace {

constexpr const char* threadName = "nccl-falcon-set";

Status runGuarded(const SetupJob& job) {
  if (job.parent) job.parent->awaitTurn();
  return withoutExceptions("a communicator could not be made", job.work);
}

void runInBackground(SetupJob job) {
  ncclComm& communicator = *job.communicator;
  // The thread has a reference of its own: the application may destroy the communicator meanwhile.
  const CommunicatorUse kept(communicator);
  if (job.takesPart)
    *job.output = &communicator;
  else
    CommunicatorUse::release(communicator);
  try {
    libraryThread(threadName, [job = std::move(job), use = CommunicatorUse(communicator)]() mutable {
      use.endSoon();
      if (const Status made = runGuarded(job); !made)
        keepError(made.error(), [&](Error error) { use->fail(std::move(error)); });
      if (job.parent) job.parent->done();
    }).detach();
  } catch (const std::exception& error) {
    communicator.fail(
        log::decided(Error::system("a thread to set up a communicator cannot be started: {}", error.what())));
  }
}

Status runToEnd(const SetupJob& job) {
  const Status made = runGuarded(job);
  if (job.parent) job.parent->done();
  return made;
}

/// Ranks of one thread wait for each other, so each has a thread of its own; the caller's is one of them. All or none
/// are begun: a rank whose partners cannot start would wait for them in vain.
std::vector<Status> runAtOnce(const std::vector<SetupJob>& jobs) {
  enum Gate { closed, go, goHome };
  std::atomic<Gate> gate{closed};
  std::vector<Status> outcomes(jobs.size());
  std::vector<std::thread> threads;
  Gate decision = goHome;
  const auto open = [&] {
    gate.store(decision);
    gate.notify_all();
    if (decision == go) outcomes[0] = runToEnd(jobs[0]);
    for (std::thread& thread : threads) thread.join();
  };
  try {
    threads.reserve(jobs.size() - 1);
    for (size_t i = 1; i < jobs.size(); ++i)
      threads.push_back(libraryThread(threadName, [&, i] {
        gate.wait(closed);
        if (gate.load() == go) outcomes[i] = runToEnd(jobs[i]);
      }));
    decision = go;
  } catch (const std::exception& error) {
    open();
    const Error reason = log::decided(
        Error::system("a thread to set up one of {} communicators cannot be started: {}", jobs.size(), error.what()));
    outcomes.assign(jobs.size(), reason);
    return outcomes;
  }
  open();
  return outcomes;
}

void deliver(const SetupJob& job, const Status& made) {
  const bool ready = made && job.communicator->state.load(std::memory_order_acquire) == ncclComm::State::ready;
  if (ready)
    *job.output = job.communicator;
  else
    CommunicatorUse::release(*job.communicator);
}

}  // namespace

Status runSetupJobs(std::vector<SetupJob> jobs, bool blocking) {
  for (const SetupJob& job : jobs)
    if (job.parent) job.parent->queue();
  if (!blocking) {
    for (SetupJob& job : jobs) runInBackground(std::move(job));
    return Error(ErrorCode::inProgress, "communicators are being set up");
  }
  const std::vector<Status> outcomes = runAtOnce(jobs);
  Status first;
  for (size_t i = 0; i < jobs.size(); ++i) {
    deliver(jobs[i], outcomes[i]);
    if (first && !outcomes[i]) first = outcomes[i];
  }
  return first;
}

}  // namespace falcon::api
