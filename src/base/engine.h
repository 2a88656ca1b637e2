// A communicator as the C ABI sees it, whichever engine moves the data.
#pragma once

#include <cstddef>
#include <span>

#include "base/call.h"
#include "base/hold_point.h"
#include "base/membership.h"
#include "base/recorders.h"

namespace falcon {

class Engine;

/// The seams a communicator is built with. All outlive it. `calls` and `transfers` may be null: Falcon is off.
struct EngineHooks {
  HoldPoint* hold = nullptr;  ///< null: never held
  CallRecorder* calls = nullptr;
  TransferRecorder* transfers = nullptr;
};

/// One call of a group and the communicator it is for. `stream` is what the caller passed.
struct Submission {
  Engine* engine = nullptr;
  Call call;
  void* stream = nullptr;
  bool besideComputing = false;    ///< host engine: who waits leaves its core to the application at once
  const void* settings = nullptr;  ///< vendor's engine: an ncclCollConfig_t for this call; null: none
  std::uint64_t tag = 0;           ///< of the caller's for its profiler; 0: none
};

/// One rank's communicator, and what moves its data. Thread-safe only as NCCL promises: one thread at a time submits
/// and registers; asyncError(), revoke() and abort() from any thread, any time. Errors are logged.
class Engine : public Membership {
 public:
  /// Runs the calls of a group, together: they are for this communicator and others of the same kind. The host engine
  /// returns when they are complete, the vendor's when they stand on their streams. Gives the first error.
  virtual Status run(std::span<const Submission> group) = 0;
  /// The same for one call on no stream.
  virtual Status run(const Call& call) = 0;
  /// What run() would find wrong with the group before anything happens. Nothing is changed.
  virtual Status check(std::span<const Submission> group) = 0;
  /// Microseconds that the group would take. Nothing runs.
  virtual Result<double> estimate(std::span<const Submission> group) = 0;

  /// A reduction that multiplies by `multiplier` first: fills in the engine's number of it, where it has one.
  virtual Status makeOp(DataType type, PreMultiplier& multiplier) = 0;
  virtual Status destroyOp(const PreMultiplier& multiplier) = 0;

  /// The results are handles of the engine's, to be given back; null: this engine does not register such memory.
  /// Windows are registered by all ranks, in the same order. `flags` as in nccl.h.
  virtual Result<void*> registerBuffer(void* buffer, std::size_t size) = 0;
  virtual Status deregisterBuffer(void* handle) = 0;
  virtual Result<void*> registerWindow(void* buffer, std::size_t size, int flags) = 0;
  virtual Status deregisterWindow(void* window) = 0;
  /// Where the memory of a window begins for this rank.
  virtual Result<void*> addressOf(void* window) = 0;

  /// Stops this rank's operations, now and for good (invalidUsage); the other ranks are not told. What is made of it,
  /// and destruction, go on working.
  virtual Status revoke() = 0;
  /// Completes what is outstanding; local and remote resources stay until the end.
  virtual Status finalize() = 0;
  /// Success, or what broke the communicator; never blocks.
  virtual Status asyncError() const = 0;
  /// Gives everything back, as destruction does, and says how that went. Nothing may be asked of it afterwards.
  virtual Status end() = 0;
};

}  // namespace falcon
