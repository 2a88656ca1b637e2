// A communicator of the vendor's, as Falcon knows it: counted from its making on, watched once the job knows it.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

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

/// Made and ended by the application's thread, introduced by another one.
class WatchedCommunicator final : public Membership {
 public:
  /// `known`: ready when Falcon's part in its making has ended, well or not.
  WatchedCommunicator(Rank rank, int size, int device, std::shared_future<void> known)
      : rank_(rank), size_(size), device_(device), counts_(size), lastStep_(std::move(known)) {}
  ~WatchedCommunicator() override;

  EngineKind kind() const override { return EngineKind::vendor; }
  CommunicatorId id() const override { return id_.load(std::memory_order_relaxed); }
  Rank rank() const override { return rank_; }
  int size() const override { return size_; }
  int device() const override { return device_; }
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
  void setLayout(const control::Layout& layout);
  bool hasLayout() const;
  std::optional<control::Layout> layout() const;

  control::Checkpointing& checkpoints() { return checkpoints_; }

  /// Falcon's part of the id for the ranks that join when this grows: this rank has asked the vendor for it.
  void keepGrowthId(const bootstrap::UniqueId& id);
  std::optional<bootstrap::UniqueId> takeGrowthId();

  /// The application ends it: Falcon no longer uses it, but for steps that were asked for before.
  void end();
  /// The application has ended it, and no step is to come.
  bool isOver() const;

  /// Falcon's network of its members, and the job; null where it is not watched, or no longer.
  std::shared_ptr<bootstrap::CommunicatorNetwork> network() const;
  std::shared_ptr<control::Job> job() const;

  /// A step over its network: what is made of it, which may be asked for just before it ends.
  class Step {
   public:
    explicit Step(std::shared_ptr<WatchedCommunicator> of) : of_(std::move(of)) {}
    ~Step() { of_->stepEnds(); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    const std::shared_ptr<WatchedCommunicator> of_;
  };
  struct QueuedStep {
    std::shared_ptr<Step> step;
    std::shared_future<void> before;  ///< to be waited for
  };
  /// Steps follow each other, in the order in which the application asked for them; this one will make `mine` ready.
  static QueuedStep queueStep(const std::shared_ptr<WatchedCommunicator>& of, std::shared_future<void> mine);

 private:
  void stepEnds();

  const Rank rank_;
  const int size_, device_;
  CallCounts counts_;
  control::Checkpointing checkpoints_;
  std::atomic<CommunicatorId> id_{0};
  std::atomic<const Watch*> watch_{nullptr};
  std::atomic<bool> ended_{false};

  mutable std::mutex mutex_;  ///< of all below
  std::shared_future<void> lastStep_;
  int steps_ = 0;  ///< asked for, and not done
  std::shared_ptr<control::Job> job_;
  std::shared_ptr<bootstrap::CommunicatorNetwork> network_;
  std::unique_ptr<const Watch> kept_;
  std::optional<control::Layout> layout_;
  std::optional<bootstrap::UniqueId> growthId_;
};

}  // namespace falcon::preload
