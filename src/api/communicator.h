// What an ncclComm_t points to.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "api/exports.h"
#include "api/iterations.h"
#include "api/lane.h"
#include "api/offspring.h"
#include "api/process.h"
#include "api/reshape_role.h"
#include "api/settings.h"
#include "api/user_ops.h"
#include "base/asymmetric_fence.h"
#include "base/call_counts.h"
#include "base/counter_clock.h"
#include "base/engine.h"
#include "bootstrap/communicator_network.h"
#include "collectives/host_communicator.h"
#include "control/checkpointing.h"
#include "control/job.h"
#include "gpu/cuda_driver.h"
#include "gpu/vendor_communicator.h"

namespace falcon::api {

/// How the last call in the background ended. Thread-safe.
class BackgroundOutcome {
 public:
  void set(const Status& status);
  Status get() const;

 private:
  mutable std::mutex mutex_;
  Status status_;
};

}  // namespace falcon::api

/// Counted by its users: the application holds one reference, every call inside the library another. So an abort from
/// another thread returns at once, and the last one out frees the memory.
struct ncclComm {
  /// working: a call of a nonblocking communicator is under way in the background.
  enum class State : std::uint8_t { starting, ready, working, failed };
  /// What ended its work; suspended: for a while.
  enum class Closed : std::uint8_t { no, finalized, revoked, suspended };

  explicit ncclComm(falcon::api::Settings configured);
  ~ncclComm();

  /// Puts the communicator to work, or marks it failed. Called once, by the thread that sets it up. The engine is there
  /// already.
  void start(std::shared_ptr<falcon::control::Job> inJob, int placeInLog);
  void fail(falcon::Error error);
  /// Falcon forgets the communicator, then the engine gives all back. Nobody else uses it any more.
  falcon::Status end();
  /// Another communicator of host memory takes this one's place behind the handle, which stays. No call is inside, and
  /// nothing is queued; who asks for errors or aborts finds either of them.
  void adopt(std::unique_ptr<falcon::collectives::HostCommunicator> other,
             std::unique_ptr<falcon::CallCounts> itsCounts) noexcept;

  static constexpr std::uint64_t headMark = 0x6e6f636c61466c63, tailMark = 0x636c466c61636f6e;
  /// Whether there is a communicator at this address; there may be anything.
  static bool isAt(const ncclComm* address) {
    return reinterpret_cast<std::uintptr_t>(address) % alignof(ncclComm) == 0 &&
           address->headMagic.load(std::memory_order_relaxed) == headMark && address->tailMagic == tailMark;
  }

  /// See requireOurs(). Atomic, since one thread may abort while another one calls.
  std::atomic<std::uint64_t> headMagic;
  const int generation;                     ///< Process::generation() at birth
  std::atomic<std::int64_t> references{1};  ///< see CommunicatorUse
  /// Instead of a reference while a plain call is inside, of which there is one at a time: no locked instruction.
  std::atomic<bool> inside{false};
  const bool reliesOnHeavyFences = falcon::takePartInHeavyFences();
  std::atomic<State> state{State::starting};
  std::atomic<Closed> closed{Closed::no};
  std::atomic<bool> aborted{false};
  falcon::api::Settings settings;
  std::optional<falcon::Error> startError;  ///< in state failed
  falcon::api::BackgroundOutcome background;

  // In state ready:
  std::shared_ptr<falcon::control::Job> job;  ///< null: Falcon is off. Owns the hooks.
  falcon::EngineHooks hooks;
  bool watched = false;         ///< calls pass the hold point and the recorder
  bool plain = false;           ///< its calls outside of groups go straight to the host engine, which nobody watches
  bool direct = false;          ///< they go to the vendor's engine, past nothing but who watches
  int place = falcon::noPlace;  ///< where the recorder keeps it
  /// On host memory: who knows pointers of a device, which are refused. Null: there can be none.
  std::shared_ptr<const falcon::gpu::CudaDriver> driver;
  std::unique_ptr<falcon::Engine> engine;
  std::unique_ptr<falcon::Engine> replaced;  ///< the one before, see adopt()
  /// The engine for what only one kind of it does: one of them is null.
  falcon::collectives::HostCommunicator* host = nullptr;
  falcon::gpu::VendorCommunicator* vendors = nullptr;
  /// Beside the vendor's communicator: Falcon's own among the same ranks; null: none of them is watched.
  std::shared_ptr<falcon::bootstrap::CommunicatorNetwork> network;
  /// Of what all ranks do together over `network`: see control/step_agreement.h.
  std::atomic<std::uint64_t> networkSteps{0};
  unsigned ranks = 0;  ///< engine->size()
  std::optional<falcon::control::RegisteredPart> layout;
  /// Shared with an end that is being told, in which the application may destroy the communicator.
  const std::shared_ptr<falcon::api::Iterations> iterations = std::make_shared<falcon::api::Iterations>();
  std::unique_ptr<falcon::CallCounts> counts;  ///< of the calls so far, where it is watched
  falcon::CounterClock<> clock;                ///< of its calls then, of which one thread at a time makes some
  falcon::control::Checkpointing checkpoints;
  falcon::api::UserOps userOps;
  falcon::api::Lane lane;  ///< of calls on host streams
  falcon::api::Offspring offspring;
  std::optional<ncclUniqueId> idToGrow;  ///< from ncclCommGetUniqueId; ncclCommGrow may do without it being given
  falcon::api::ReshapeRole reshape;
  std::uint64_t tailMagic;
};

namespace falcon::api {

/// A reference to a communicator for as long as a call is inside the library.
class CommunicatorUse {
 public:
  explicit CommunicatorUse(ncclComm& communicator) : communicator_(&communicator) {
    communicator.references.fetch_add(1, std::memory_order_relaxed);
  }
  CommunicatorUse(CommunicatorUse&& other) noexcept
      : communicator_(std::exchange(other.communicator_, nullptr)), weight_(std::exchange(other.weight_, 1)) {}
  CommunicatorUse& operator=(CommunicatorUse&& other) noexcept {
    std::swap(communicator_, other.communicator_);
    std::swap(weight_, other.weight_);
    return *this;
  }
  ~CommunicatorUse() {
    if (communicator_) release(*communicator_, weight_);
  }
  ncclComm& operator*() const { return *communicator_; }
  ncclComm* operator->() const { return communicator_; }
  ncclComm* get() const { return communicator_; }

  /// Nobody else uses it: the application has given it up, and no call is inside.
  bool isLast() const { return communicator_->references.load(std::memory_order_acquire) == weight_; }

  /// For a thread of the library that is about to tell that its call is done: the reference goes right after that.
  void endSoon() {
    communicator_->references.fetch_add(ending, std::memory_order_relaxed);
    weight_ += ending;
  }
  /// Waits for such threads: theirs must not be the last reference of a communicator whose calls are known to be done.
  static void awaitEnding(const ncclComm& communicator);

  /// Gives one reference up; the last one frees.
  static void release(ncclComm& communicator, std::int64_t weight = 1);

 private:
  static constexpr std::int64_t ending = std::int64_t{1} << 32;

  ncclComm* communicator_;
  std::int64_t weight_ = 1;
};

/// The use of a communicator that another one is made of, and that one's place among its offspring.
class ParentUse {
 public:
  /// `inTurn`: what was asked for before is made first; else it counts as given up.
  ParentUse(CommunicatorUse use, bool inTurn) : use_(std::move(use)), inTurn_(inTurn) {}
  ParentUse(const ParentUse&) = delete;
  ParentUse& operator=(const ParentUse&) = delete;
  ~ParentUse() { done(); }
  ncclComm& operator*() const { return *use_; }

  void queue() { place_ = use_->offspring.queue(!inTurn_); }
  void awaitTurn() {
    if (inTurn_ && place_) use_->offspring.await(*place_);
  }
  void done() {
    if (!place_) return;
    use_.endSoon();
    use_->offspring.done(*place_);
    place_.reset();
  }

 private:
  CommunicatorUse use_;
  const bool inTurn_;
  std::optional<std::uint64_t> place_;
};

/// A CommunicatorUse for a plain call, of which a communicator has one at a time. False: it has just been taken from
/// the application.
class PlainUse {
 public:
  [[gnu::always_inline]] explicit PlainUse(ncclComm& communicator) : communicator_(communicator) {
    communicator.inside.store(true, std::memory_order_relaxed);
    lightFence(communicator.reliesOnHeavyFences);
    holds_ = communicator.headMagic.load(std::memory_order_relaxed) == ncclComm::headMark;
  }
  PlainUse(const PlainUse&) = delete;
  PlainUse& operator=(const PlainUse&) = delete;
  ~PlainUse() { communicator_.inside.store(false, std::memory_order_release); }
  explicit operator bool() const { return holds_; }

 private:
  ncclComm& communicator_;
  bool holds_;
};

/// Errors (invalidArgument): null, or not a communicator of this library. invalidUsage: inherited across fork().
Status requireOurs(const char* function, const ncclComm* communicator);
/// Whether requireReady() would succeed.
inline bool isReady(const ncclComm* communicator) {
  return communicator && ncclComm::isAt(communicator) && communicator->generation == Process::generation() &&
         communicator->state.load(std::memory_order_acquire) == ncclComm::State::ready;
}
/// Its set-up is complete, and no call of it is under way in the background.
Result<CommunicatorUse> requireReady(const char* function, ncclComm* communicator);
/// Its set-up is complete.
Result<CommunicatorUse> requireMade(const char* function, ncclComm* communicator);
/// For Destroy and Abort: no later call finds it.
void takeFromApplication(ncclComm& communicator);

}  // namespace falcon::api
