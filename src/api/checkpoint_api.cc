// nccl_falcon.h: checkpoints and restarts.
#include "api/exports.h"

#include "api/communicator.h"
#include "api/guard.h"
#include "base/log.h"
#include "control/checkpointing.h"
#include "control/step_agreement.h"

using namespace falcon;
using namespace falcon::api;

namespace {

/// Falcon's network among the ranks of the communicator; null: there is none beside the vendor's.
bootstrap::CommunicatorNetwork* networkOf(ncclComm& communicator) {
  return communicator.host ? &communicator.host->network() : communicator.network.get();
}

/// State goes from one replica to the others by the host engine, over a communicator that is made for it.
class EngineExchange final : public control::NetworkExchange {
 public:
  EngineExchange(ncclComm& communicator, bootstrap::CommunicatorNetwork& network)
      : NetworkExchange(network, communicator.job.get()), communicator_(communicator) {}

  bool canBroadcast() const override { return communicator_.host != nullptr; }

  Status broadcast(int colour, Rank root, std::span<const std::span<std::byte>> buffers) override {
    // The root comes first, so that it is rank 0 there. By the engine and not by the library's own exports: those may
    // be another library's in this process.
    const Rank own = communicator_.engine->rank();
    auto group = communicator_.host->split(colour, own == root ? 0 : own + 1, communicator_.settings.wish());
    if (!group) return group.error();
    Status sent;
    for (const auto& buffer : buffers) {
      Call call{.operation = Operation::broadcast, .type = DataType::i8};
      call.send = call.receive = buffer.data();
      call.count = buffer.size();
      call.peer = 0;
      if (sent) sent = (*group)->run(call);
    }
    if (!sent) (void)(*group)->abort();
    return sent;
  }

 private:
  ncclComm& communicator_;
};

/// Holds the communicator while in use.
template <class Work>
Status withCheckpoints(const char* function, ncclComm_t comm, Work&& work) {
  auto use = requireReady(function, comm);
  if (!use) return use.error();
  return work(**use);
}

/// What all ranks do together.
template <class Work>
Status together(const char* function, ncclComm_t comm, Work&& work) {
  return withCheckpoints(function, comm, [&](ncclComm& communicator) -> Status {
    bootstrap::CommunicatorNetwork* const network = networkOf(communicator);
    if (!network)
      return log::decided(Error::invalidUsage(
          "{}: Falcon does not know comm's ranks; NCCL_FALCON=1 in all processes makes it known", function));
    EngineExchange exchange(communicator, *network);
    if (communicator.vendors) {
      const Status agreed = control::agreeOnStep(communicator.networkSteps++,
                                                 [&](std::string_view mine) { return exchange.allGather(mine); });
      if (!agreed)
        return log::decided(Error(agreed.error().code(), fmt::format("{}: {}", function, agreed.error().message())));
    }
    reshape::Place place =
        control::placeOf(communicator.engine->rank(), communicator.engine->size(), communicator.layout);
    place.role = communicator.reshape.roleOf(place.rank);
    return work(communicator, exchange, place);
  });
}

}  // namespace

extern "C" {

ncclResult_t ncclFalconRegisterState(ncclComm_t comm, const char* name, void* pointer, size_t bytes,
                                     unsigned int flags) {
  constexpr const char* function = "ncclFalconRegisterState";
  return guarded(function, [&] {
    return withCheckpoints(function, comm, [&](ncclComm& communicator) {
      return communicator.checkpoints.registerState(name, pointer, bytes, flags);
    });
  });
}

ncclResult_t ncclFalconUnregisterState(ncclComm_t comm, const char* name) {
  constexpr const char* function = "ncclFalconUnregisterState";
  return guarded(function, [&] {
    return withCheckpoints(function, comm,
                           [&](ncclComm& communicator) { return communicator.checkpoints.unregisterState(name); });
  });
}

ncclResult_t ncclFalconCheckpoint(ncclComm_t comm, uint64_t iteration, const char* folder) {
  constexpr const char* function = "ncclFalconCheckpoint";
  return guarded(function, [&] {
    return together(function, comm, [&](ncclComm& communicator, EngineExchange& exchange, const reshape::Place& place) {
      return communicator.checkpoints.checkpoint(iteration, folder, place, exchange, communicator.job.get());
    });
  });
}

ncclResult_t ncclFalconCheckpointSynchronize(ncclComm_t comm) {
  constexpr const char* function = "ncclFalconCheckpointSynchronize";
  return guarded(function, [&] {
    return withCheckpoints(function, comm,
                           [](ncclComm& communicator) { return communicator.checkpoints.synchronize(); });
  });
}

ncclResult_t ncclFalconRestore(ncclComm_t comm, const char* folder, uint64_t* iteration) {
  constexpr const char* function = "ncclFalconRestore";
  return guarded(function, [&]() -> Status {
    if (const Status given = requireOutput(function, "iteration", iteration); !given) return given;
    return together(function, comm,
                    [&](ncclComm& communicator, EngineExchange& exchange, const reshape::Place& place) -> Status {
                      const auto restored = communicator.checkpoints.restore(folder, place, exchange);
                      if (!restored) return restored.error();
                      *iteration = *restored;
                      return {};
                    });
  });
}

ncclResult_t ncclFalconWanted(ncclComm_t comm, uint64_t iteration, unsigned int* wanted) {
  constexpr const char* function = "ncclFalconWanted";
  return guarded(function, [&]() -> Status {
    auto use = requireReady(function, comm);
    if (!use) return use.error();
    if (const Status given = requireOutput(function, "wanted", wanted); !given) return given;
    const bool restart = (*use)->job && (*use)->job->restartWanted(iteration);
    *wanted = restart ? NCCL_FALCON_WANTED_CHECKPOINT | NCCL_FALCON_WANTED_RESTART : 0;
    return {};
  });
}

ncclResult_t ncclFalconRestart(ncclComm_t comm, int* exitCode) {
  constexpr const char* function = "ncclFalconRestart";
  return guarded(function, [&]() -> Status {
    if (const Status given = requireOutput(function, "exitCode", exitCode); !given) return given;
    return together(
        function, comm, [&](ncclComm& communicator, EngineExchange& exchange, const reshape::Place& place) -> Status {
          const auto code =
              communicator.checkpoints.restart(place, communicator.engine->device(), exchange, communicator.job.get());
          if (!code) return code.error();
          *exitCode = *code;
          return {};
        });
  });
}

}  // extern "C"
