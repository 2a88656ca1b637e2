#include "api/background.h"

#include "api/setup.h"
#include "api/worker_pool.h"
#include "base/log.h"

namespace falcon::api {
namespace {

Status guardedWork(const std::function<Status()>& work) {
  try {
    return work();
  } catch (const std::exception& exception) {
    return log::decided(Error::internal("a nonblocking call: {}", exception.what()));
  }
}

void setState(const std::vector<CommunicatorUse>& communicators, ncclComm::State state) {
  for (const CommunicatorUse& use : communicators) use->state.store(state, std::memory_order_release);
}

}  // namespace

Status runInBackground(std::vector<CommunicatorUse> communicators, std::function<Status()> work) {
  setState(communicators, ncclComm::State::working);
  const auto users = std::make_shared<std::vector<CommunicatorUse>>(std::move(communicators));
  const auto run = [users, work = std::move(work)] {
    const Status done = guardedWork(work);
    for (const CommunicatorUse& use : *users) use->background.set(done);
    setState(*users, ncclComm::State::ready);
    return done;
  };
  const bool handedOver = WorkerPool::instance().run([run, context = currentDeviceContext()] {
    makeContextCurrent(context);
    (void)run();
  });
  if (!handedOver) return run();
  return Error(ErrorCode::inProgress, "the call goes on in the background");
}

}  // namespace falcon::api
