#include "preload/checkpoint_calls.h"

#include <algorithm>
#include <future>

#include "base/log.h"
#include "control/step_agreement.h"

namespace falcon::preload {
namespace {

template <class Work>
Status together(const char* function, const Directory::Use& use, Work&& work) {
  const std::uint64_t number = (*use).nextStep();
  struct Turn {
    std::promise<void> done;
    ~Turn() { done.set_value(); }
  } turn;
  WatchedCommunicator::Step step(use.share(), turn.done.get_future().share());
  step.awaitTurn();
  const auto network = (*use).network();
  const auto job = (*use).job();
  if (!network)
    return log::decided(Error::invalidUsage(
        "{}: Falcon does not watch comm, so it does not know its ranks: NCCL_DEBUG=INFO says why", function));
  control::NetworkExchange exchange(*network, job.get());
  const Status agreed = control::agreeOnStep(number, [&](std::string_view mine) { return exchange.allGather(mine); });
  if (!agreed)
    return log::decided(Error(agreed.error().code(), fmt::format("{}: {}", function, agreed.error().message())));
  const reshape::Place place = control::placeOf((*use).rank(), (*use).size(), (*use).layout());
  return work((*use).checkpoints(), exchange, place, job.get());
}

}  // namespace

Status takeCheckpoint(const Directory::Use& use, std::uint64_t iteration, const char* folder) {
  return together("ncclFalconCheckpoint", use,
                  [&](control::Checkpointing& checkpoints, reshape::Exchange& exchange, const reshape::Place& place,
                      control::Job* job) { return checkpoints.checkpoint(iteration, folder, place, exchange, job); });
}

Status restoreCheckpoint(const Directory::Use& use, const char* folder, std::uint64_t& iteration) {
  return together("ncclFalconRestore", use,
                  [&](control::Checkpointing& checkpoints, reshape::Exchange& exchange, const reshape::Place& place,
                      control::Job*) -> Status {
                    const auto restored = checkpoints.restore(folder, place, exchange);
                    if (!restored) return restored.error();
                    iteration = *restored;
                    return {};
                  });
}

Status requestRestart(const Directory::Use& use, int& exitCode) {
  return together("ncclFalconRestart", use,
                  [&](control::Checkpointing& checkpoints, reshape::Exchange& exchange, const reshape::Place& place,
                      control::Job* job) -> Status {
                    const auto code = checkpoints.restart(place, std::max((*use).device(), 0), exchange, job);
                    if (!code) return code.error();
                    exitCode = *code;
                    return {};
                  });
}

}  // namespace falcon::preload
