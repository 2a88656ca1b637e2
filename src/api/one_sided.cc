#include "api/one_sided.h"

#include "api/queued_calls.h"
#include "base/log.h"

namespace falcon::api {
namespace {

Status runNow(const OneSidedWork& work) {
  ncclComm& communicator = **work.use;
  HoldPoint* const hold = communicator.hooks.hold;
  if (hold) hold->pass();
  collectives::OneSided& oneSided = communicator.host->oneSided();
  const Status done =
      work.waits ? oneSided.await(work.function, work.signals) : oneSided.send(work.function, work.message);
  if (hold) hold->leaveCall();
  return done;
}

/// One of them on a stream.
class QueuedOneSided final : public QueuedWork {
 public:
  explicit QueuedOneSided(OneSidedWork work) : work_(std::move(work)) {
    lanes = {&work_.hostStream->lane, &(*work_.use)->lane};
  }
  Status run() override {
    HoldPoint* const hold = (*work_.use)->hooks.hold;
    if (hold) hold->noteCall(SystemClock::instance().now());
    const Status done = runNow(work_);
    if (hold) hold->noteCall(HoldPoint::resting);
    work_.use->endSoon();
    return done;
  }

 private:
  void release() override { delete this; }

  OneSidedWork work_;
};

Status queue(const OneSidedWork& work) {
  ncclComm& communicator = **work.use;
  if (HoldPoint* hold = communicator.hooks.hold) {
    hold->noteCall(SystemClock::instance().now());
    hold->pass();
  }
  if (communicator.job) work.hostStream->joinJob(communicator.job);
  if (Lane::queue(QueuedWorkRef(new QueuedOneSided(work)))) return {};
  return log::decided(Error::invalidArgument("{}: the host stream was destroyed", work.function));
}

}  // namespace

Status runOneSided(std::span<const OneSidedWork> works) {
  for (const OneSidedWork& work : works) {
    if (!work.hostStream) awaitQueued(**work.use);
    if (const Status done = work.hostStream ? queue(work) : runNow(work); !done) return done;
  }
  return {};
}

}  // namespace falcon::api
