// A communicator as the C ABI sees it, whichever engine moves the data.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/call.h"
#include "base/event.h"
#include "base/hold_point.h"
#include "base/recorders.h"
#include "base/result.h"

namespace falcon {

enum class EngineKind : std::uint8_t { host, vendor };

/// The seams a communicator is built with. All outlive it. `calls` and `transfers` may be null: Falcon is off.
struct EngineHooks {
  HoldPoint* hold = nullptr;  ///< null: never held
  CallRecorder* calls = nullptr;
  TransferRecorder* transfers = nullptr;
};

/// Thread-safe only as NCCL promises: one thread at a time submits; asyncError() and abort() from any thread, any time.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual EngineKind kind() const = 0;
  virtual CommunicatorId id() const = 0;
  virtual Rank rank() const = 0;
  virtual int size() const = 0;
  virtual int device() const = 0;

  /// Null colour group: a result holding a null pointer (NCCL_SPLIT_NOCOLOR). Collective over the parent.
  virtual Result<std::unique_ptr<Engine>> split(int color, int key) = 0;
  /// Without the ranks of `excluded` (valid, in rising order, not this one), which do not call. `despiteFailure`:
  /// running operations are stopped first, and a broken communicator will do. Collective over the rest, all with equal
  /// arguments.
  virtual Result<std::unique_ptr<Engine>> shrink(std::span<const Rank> excluded, bool despiteFailure) = 0;
  /// Stops this rank's operations, now and for good (invalidUsage); the other ranks are not told. Split, shrink and
  /// destruction go on working. From any thread.
  virtual Status revoke() = 0;
  /// Completes what is outstanding; local and remote resources stay until destruction.
  virtual Status finalize() = 0;
  /// Stops running operations on all members, from any thread; they end with a remote error on the others.
  virtual void abort() = 0;
  /// Success, or what broke the communicator; never blocks.
  virtual Status asyncError() const = 0;

  /// Number the next collective will get; counts collectives only.
  virtual std::uint64_t nextCollective() const = 0;
};

/// One call of a group and the communicator it is for. `stream` is what the caller passed.
struct Submission {
  Engine* engine = nullptr;
  Call call;
  void* stream = nullptr;
  bool besideComputing = false;    ///< host engine: who waits leaves its core to the application at once
  const void* settings = nullptr;  ///< vendor's engine: an ncclCollConfig_t for this call; null: none
};

}  // namespace falcon
