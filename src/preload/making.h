// The making of a communicator as Falcon takes part in it: the vendor makes it in the application's thread, and beside
// it a thread of ours joins Falcon's own network of the same ranks. Neither waits for the other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "front/core_functions.h"
#include "preload/directory.h"

namespace falcon::preload {

/// Shared by the thread that joins and by the application's. Thread-safe.
class Making {
 public:
  /// What it is made from; gives Falcon's network of the members, null: this rank is not among them, or it did not come
  /// about. `isGivenUp` is to be asked while it waits.
  struct Joined {
    std::shared_ptr<control::Job> job;
    std::shared_ptr<bootstrap::CommunicatorNetwork> network;
  };
  using Join = std::function<Result<Joined>(const std::function<bool()>& isGivenUp)>;

  /// Where its thread could not be started, too: whoever comes behind it waits for the end.
  ~Making() { end(); }

  /// Starts the thread. Throws std::exception where none can be had.
  static std::shared_ptr<Making> start(Join join);
  /// The same, for what is made over the network of `parent`: in its turn among the steps there.
  static std::shared_ptr<Making> startBehind(const std::shared_ptr<WatchedCommunicator>& parent, Join join);

  /// The vendor has made it. The first time counts. `device`: -1 where the vendor may not be done with it yet.
  std::shared_ptr<WatchedCommunicator> made(Rank rank, int size, int device);
  /// It will not be made, or never be found.
  void giveUp();
  /// The same, where the application has its handle and Falcon cannot tell which that is.
  void lose();

  /// Ready when the thread has done its part.
  std::shared_future<void> ended() const { return ended_; }
  bool hasEnded() const { return hasEnded_.load(); }

 private:
  using Turn = std::shared_ptr<WatchedCommunicator::Step>;
  static void startThread(std::shared_ptr<Making> making, Join join, Turn turn);
  void run(const Join& join);
  /// Its part is done. Takes no memory, as a broken promise would.
  void end() noexcept;
  std::shared_ptr<WatchedCommunicator> awaitMade();
  bool isGivenUp() const;
  /// Says that the communicator is not watched, unless the application itself has ended it or never had it.
  void notWatched(const Error& error) const;
  bool isOver() const;
  bool isLate() const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<WatchedCommunicator> communicator_;
  bool givenUp_ = false;
  std::optional<std::chrono::steady_clock::time_point> madeAt_;  ///< where it is known
  std::atomic<bool> hasEnded_{false};
  std::promise<void> end_;
  std::shared_future<void> ended_ = end_.get_future().share();
};

/// Of a unique id, all ranks anew.
Making::Join joinById(const bootstrap::UniqueId& id, Rank rank, int size);
/// Of a communicator that is watched, or will be, at its step `number` (nextStep(); nextShrink()).
Making::Join joinBySplit(std::shared_ptr<WatchedCommunicator> parent, std::uint64_t number, int color, int key);
Making::Join joinByShrink(std::shared_ptr<WatchedCommunicator> parent, std::uint64_t number,
                          std::vector<Rank> excluded);
/// On a rank of the parent, which grows to `size`. `id`: of the ranks that join it; one rank of the parent knows it.
Making::Join joinByGrowth(std::shared_ptr<WatchedCommunicator> parent, std::uint64_t number, int size,
                          std::optional<bootstrap::UniqueId> id);

}  // namespace falcon::preload
