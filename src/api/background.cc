#include "api/background.h"

#include "api/guard.h"
#include "api/setup.h"
#include "api/worker_pool.h"

namespace falcon::api {
namespace {

void setState(const std::vector<CommunicatorUse>& communicators, ncclComm::State state) {
  for (const CommunicatorUse& use : communicators) use->state.store(state, std::memory_order_release);
}

HoldPoint* holdOf(const std::vector<CommunicatorUse>& communicators) {
  for (const CommunicatorUse& use : communicators)
    if (use->hooks.hold) return use->hooks.hold;
  return nullptr;
}

}  // namespace

Status runInBackground(std::vector<CommunicatorUse> communicators, std::function<Status()> work) {
  const auto users = std::make_shared<std::vector<CommunicatorUse>>(std::move(communicators));
  const auto run = [users, work = std::move(work)] {
    const Status done = withoutExceptions("a nonblocking call", work);
    for (CommunicatorUse& use : *users) {
      if (done)
        use->background.set(done);
      else
        keepError(done.error(), [&](Error error) { use->background.set(std::move(error)); });
      use.endSoon();
    }
    setState(*users, ncclComm::State::ready);
    return done;
  };
  std::function<void()> inBackground = [run, users, context = currentDeviceContext()] {
    makeContextCurrent(context);
    (void)run();
    if (HoldPoint* hold = holdOf(*users)) hold->noteCall(HoldPoint::resting);
  };
  setState(*users, ncclComm::State::working);  // no memory is taken from here on but by the pool, which says so
  if (!WorkerPool::instance().run(std::move(inBackground))) return run();
  return Error(ErrorCode::inProgress, "the call goes on in the background");
}

}  // namespace falcon::api
