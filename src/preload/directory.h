// Finds what Falcon knows of a communicator by the vendor's handle: no lock, a few nanoseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "nccl.h"
#include "preload/watched_communicator.h"

namespace falcon::preload {

/// One a process. Thread-safe; what was found stays until its Use ends, though it is removed meanwhile.
class Directory {
  struct Slot {
    std::atomic<ncclComm_t> handle{nullptr};
    std::atomic<std::int32_t> users{0};
    std::shared_ptr<WatchedCommunicator> communicator;  ///< changed only while nobody can find the slot
  };

 public:
  class Use {
   public:
    Use() = default;
    Use(Use&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
    Use& operator=(Use&& other) noexcept {
      std::swap(slot_, other.slot_);
      return *this;
    }
    ~Use() {
      if (slot_) leave(*slot_);
    }
    explicit operator bool() const { return slot_ != nullptr; }
    WatchedCommunicator& operator*() const { return *slot_->communicator; }
    std::shared_ptr<WatchedCommunicator> share() const { return slot_->communicator; }

   private:
    friend class Directory;
    explicit Use(Slot& slot) : slot_(&slot) {}
    Slot* slot_ = nullptr;
  };

  static constexpr int capacity = 4096;

  /// Nothing where the handle is not known.
  Use find(ncclComm_t handle);
  /// One that is watched; nothing where none is.
  Use findWatched();
  /// In the place of whatever had this handle. False: the directory is full.
  bool insert(ncclComm_t handle, std::shared_ptr<WatchedCommunicator> communicator);
  /// What had this handle; null: nothing. Afterwards nobody finds it.
  std::shared_ptr<WatchedCommunicator> remove(ncclComm_t handle);
  /// The process exits: all that are known are ended, and nobody finds them afterwards.
  void endAll();
  /// In a forked child, whose parent's communicators are of no use to it: nothing is freed, since other threads that
  /// the child does not have may have been using it. Takes no memory.
  void forgetAll();

 private:
  static void leave(Slot& slot) { slot.users.fetch_sub(1, std::memory_order_release); }
  static Slot* placeOf(Slot* slots, ncclComm_t handle, int step);

  Slot slots_[capacity];
};

}  // namespace falcon::preload
