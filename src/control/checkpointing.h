// Checkpoints and restarts of one communicator, as nccl_falcon.h has them: what both shapes of the library share.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "bootstrap/communicator_network.h"
#include "control/job.h"
#include "reshape/checkpoints.h"
#include "reshape/exchange.h"

namespace falcon::control {

/// Over the out-of-band network: words only. The trap does not wait for who waits here.
class NetworkExchange : public reshape::Exchange {
 public:
  /// @param job  null: Falcon is off
  NetworkExchange(bootstrap::CommunicatorNetwork& network, Job* job) : network_(network), job_(job) {}
  /// Of any length.
  Result<std::vector<std::string>> allGather(std::string_view mine) override;
  bool canBroadcast() const override { return false; }
  Status broadcast(int, Rank, std::span<const std::span<std::byte>>) override;

 private:
  Result<std::vector<std::string>> gatherOnce(std::string_view mine);

  bootstrap::CommunicatorNetwork& network_;
  Job* const job_;
};

/// The place of a rank of a communicator, by the layout that is registered for it.
reshape::Place placeOf(Rank rank, int ranks, const std::optional<RegisteredPart>& layout);

/// Thread-safe; what is collective is one at a time. Arguments are checked here; errors begin with the
/// function's name and are decided.
class Checkpointing {
 public:
  Status registerState(const char* name, void* pointer, std::size_t bytes, unsigned flags);
  Status unregisterState(const char* name);
  /// `folder` null: as the parameter says. `job` null: Falcon is off.
  Status checkpoint(std::uint64_t iteration, const char* folder, const reshape::Place& place,
                    reshape::Exchange& exchange, Job* job);
  Status synchronize();
  /// NCCL_FALCON_NO_CHECKPOINT: there is none.
  Result<std::uint64_t> restore(const char* folder, const reshape::Place& place, reshape::Exchange& exchange);
  /// The exit code.
  Result<int> restart(const reshape::Place& place, int device, reshape::Exchange& exchange, Job* job);

  /// Thread-safe, as registering is.
  reshape::RegisteredState& state() { return checkpoints_.state(); }

 private:
  reshape::Checkpoints checkpoints_;
  std::mutex oneAtATime_;
  std::string folder_;  ///< of the last checkpoint or restore
};

}  // namespace falcon::control
