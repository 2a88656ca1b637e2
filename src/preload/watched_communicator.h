// A communicator of the vendor's, as Falcon knows it: counted from its making on, watched once the job knows it.
#pragma once

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/call_counts.h"
#include "base/engine.h"
#include "bootstrap/communicator_network.h"
#include "control/checkpointing.h"
#include "control/job.h"

namespace falcon::preload {

/// Where the calls of a watched communicator are told.
struct Watch {
  std::shared_ptr<control::Job> job;  ///< so that the hooks stay while a call is inside, though it has ended
  CommunicatorId id = 0;
  EngineHooks hooks;
  int place = noPlace;
  gpu::LaunchedWork* launched = nullptr;
};

/// How the other ranks are told that this one leaves.
enum class Goodbye {
  answered,  ///< and a moment is waited until all of them know
  said,      ///< and nobody is waited for
};

/// Made and ended by the application's thread, introduced by another one.
class WatchedCommunicator final : public Membership {
 public:
  /// `device`: -1 where it is not known yet. `known`: ready when Falcon's part in its making has ended, well or not.
  WatchedCommunicator(Rank rank, int size, int device, std::shared_future<void> known)
      : rank_(rank),
        size_(size),
        deviceAsked_(device >= 0),
        device_(device),
        counts_(size),
        lastStep_(std::move(known)) {}
  ~WatchedCommunicator() override;

  EngineKind kind() const override { return EngineKind::vendor; }
  CommunicatorId id() const override { return id_.load(std::memory_order_relaxed); }
  Rank rank() const override { return rank_; }
  int size() const override { return size_; }
  int device() const override { return device_.load(std::memory_order_relaxed); }
  /// Who is in the making is not asked for its device: the first call on it is when that can be made up for.
  bool isToBeAskedForDevice() const { return !deviceAsked_.load(std::memory_order_relaxed); }
  void setDevice(int device) {
    deviceAsked_.store(true, std::memory_order_relaxed);
    device_.store(device, std::memory_order_relaxed);
  }
  std::uint64_t nextCollective() const override { return counts_.collectives(); }
  /// Nothing: the communicator is the application's, and only that may end it.
  Status abort() override { return {}; }

  CallCounts& counts() { return counts_; }

  /// The job is to know it: `network` has its members, who are `members`. Nothing after end().
  void introduce(std::shared_ptr<control::Job> job, std::shared_ptr<bootstrap::CommunicatorNetwork> network,
                 std::vector<collectives::MemberInfo> members);
  /// Null until it is watched. Lives as long as this.
  const Watch* watch() const { return watch_.load(std::memory_order_acquire); }

  /// The application's layout of the job's ranks; told to the job when that knows the communicator.
  void setPart(const control::RegisteredPart& layout);
  bool hasLayout() const;
  std::optional<control::RegisteredPart> layout() const;

  control::Checkpointing& checkpoints() { return checkpoints_; }

  /// Falcon's part of the id for the ranks that join when this grows: this rank has asked the vendor for it.
  void keepGrowthId(const bootstrap::UniqueId& id);
  std::optional<bootstrap::UniqueId> takeGrowthId();

  /// The application is about to destroy or abort it: whoever is held in a call on it must not go on.
  void willEnd() { willEnd_.store(true); }
  bool isToEnd() const { return willEnd_.load(); }
  /// A thread is held at the end of a group with calls on it, and is done with that.
  void groupIsHeld() { heldGroups_.fetch_add(1); }
  void groupIsOver();
  /// After willEnd(): until none is, so that the vendor's may go.
  void awaitHeldGroups() const;
  /// The application has ended it: Falcon no longer uses it, but for steps that were asked for before.
  void end(Goodbye goodbye = Goodbye::answered);
  /// The application has ended it, and no step is to come.
  bool isOver() const;

  /// Falcon's network of its members, and the job; null where it is not watched, or no longer.
  std::shared_ptr<bootstrap::CommunicatorNetwork> network() const;
  std::shared_ptr<control::Job> job() const;

  /// The application asks for what all ranks do together over its network: the number of that step, which is the same
  /// on all, since they ask alike. Cannot fail, so that a step that this rank then has no means for is missed by it
  /// alone, and known to be (step_agreement.h).
  std::uint64_t nextStep() { return stepsAsked_.fetch_add(1, std::memory_order_relaxed); }
  /// The same for shrinks: how many of this list were asked for before. Others than those who are left do not ask.
  std::uint64_t nextShrink(const std::vector<Rank>& excluded);

  /// A place among the steps, which may be asked for just before it ends. They follow each other in the order in which
  /// they were queued.
  class Step {
   public:
    /// This one will make `mine` ready.
    Step(std::shared_ptr<WatchedCommunicator> of, std::shared_future<void> mine);
    /// One whose turn was not awaited was never begun: who was queued behind it has been behind those before it.
    ~Step();
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

    /// Waits for those before.
    void awaitTurn();

   private:
    const std::shared_ptr<WatchedCommunicator> of_;
    std::shared_future<void> before_;  ///< not valid: its turn has come
  };

 private:
  const Rank rank_;
  const int size_;
  std::atomic<bool> deviceAsked_;
  std::atomic<int> device_;
  CallCounts counts_;
  control::Checkpointing checkpoints_;
  std::atomic<CommunicatorId> id_{0};
  std::atomic<const Watch*> watch_{nullptr};
  std::atomic<bool> willEnd_{false}, ended_{false};
  std::atomic<int> heldGroups_{0};
  std::atomic<std::uint64_t> stepsAsked_{0};

  mutable std::mutex mutex_;  ///< of all below
  std::shared_future<void> lastStep_;
  int steps_ = 0;  ///< queued, and not done
  std::map<std::vector<Rank>, std::uint64_t> shrinksAsked_;
  std::shared_ptr<control::Job> job_;
  std::shared_ptr<bootstrap::CommunicatorNetwork> network_;
  std::unique_ptr<const Watch> kept_;
  std::optional<control::RegisteredPart> layout_;
  std::optional<bootstrap::UniqueId> growthId_;
};

}  // namespace falcon::preload
