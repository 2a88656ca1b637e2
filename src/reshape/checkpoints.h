// The checkpoints of one communicator: its registered state, the two stages of writing, and the way back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "reshape/checkpoint_part.h"
#include "reshape/exchange.h"
#include "reshape/registered_state.h"
#include "reshape/storage.h"

namespace falcon::reshape {

/// What the last checkpoints took, for whoever prices a restart.
struct CheckpointTimes {
  double waitedSeconds = 0;   ///< the framework, for the last one
  double writtenSeconds = 0;  ///< from then until it was on the storage; 0: none is yet
};

/// Registering is thread-safe; take() and restore() are collective and one at a time. Destruction waits for nothing:
/// what was copied is still written, as long as the process lives and the storage, which outlives that.
class Checkpoints {
 public:
  /// `run`: see Found. Rank 0's counts. Otherwise the time, of which no two runs of a job have the same.
  explicit Checkpoints(Storage& storage = fileStorage(), std::optional<std::uint64_t> run = {});
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  RegisteredState& state() { return state_; }

  /// Copies the state (which is all that the caller waits for, if the one before has been written) and writes it in the
  /// background. On the storage stay the `keep` newest that are complete on all ranks, and what is newer.
  /// Collective. Errors: nothing is registered, the ranks pass different iterations (invalidUsage); no memory (system).
  /// What goes wrong on the storage is told by synchronize().
  Status take(const std::string& folder, std::uint64_t iteration, int keep, const Place& place, Exchange& exchange);

  /// Waits until the last one taken is on the storage. Local. Errors (system): it, or one before it that nobody asked
  /// for, could not be written; told once.
  Status synchronize();

  /// Loads the newest that is complete on all ranks and whose checksums are right. Collective; nothing where there is
  /// none, and then nothing was changed. Errors: nothing is registered (invalidUsage); there is none, and some rank
  /// could not look for it (system); a part that had been verified could not be loaded (system), and then the state is
  /// undefined.
  Result<std::optional<std::uint64_t>> restore(const std::string& folder, const Place& place, Exchange& exchange);

  CheckpointTimes times() const;
  /// The newest that this rank has on the storage, or has nothing to write for; nothing: none.
  std::optional<std::uint64_t> stored() const;
  /// Those of them that this process has taken or restored and not removed since, ascending.
  std::vector<std::uint64_t> lastStored() const;
  /// Whether this rank finds a part in the folder that another one has written, as far as is known.
  bool seesOthers() const { return seesOthers_; }
  /// Whether the last one taken is among them. True where none was taken.
  bool isTakenStored() const;

 private:
  struct Writing;
  void await();
  bool verifyOn(const std::string& folder, std::uint64_t iteration, const Place& place, bool reads);

  Storage& storage_;
  RegisteredState state_;
  const std::uint64_t run_;
  std::shared_ptr<Writing> writing_;  ///< what the writer's thread uses
  std::thread writer_;
  std::string folder_;  ///< of the last take()
  bool seesOthers_ = true;
};

}  // namespace falcon::reshape
