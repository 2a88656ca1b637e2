// A communicator that is being made, shown in the call log: who hangs there has no communicator to be seen in.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/types.h"
#include "instrument/call_log_format.h"

namespace falcon::instrument {

/// What the slot in the log says of it.
struct MakingEntry {
  MakingKind kind = MakingKind::init;
  std::uint64_t key = 0;
  Rank rank = -1;
  int size = 0;
  std::string name;
  Nanoseconds enter{0};
};

/// Holds a slot of the log. Used by one thread; the outside reads it at any time.
class Making {
 public:
  Making() = default;
  /// @param owner  of the slots, kept by this; null: they outlive it in any case
  Making(std::span<MakingSlot> slots, const MakingEntry& entry, std::shared_ptr<const void> owner) noexcept;
  ~Making() { end(); }
  Making(Making&& other) noexcept : owner_(std::move(other.owner_)), slot_(std::exchange(other.slot_, nullptr)) {}
  Making& operator=(Making&& other) noexcept {
    end();
    slot_ = std::exchange(other.slot_, nullptr);
    owner_ = std::move(other.owner_);
    return *this;
  }

  /// False: of nobody, or the log had no slot left.
  bool isShown() const { return slot_ != nullptr; }
  /// All ranks have come.
  void met() noexcept;
  /// These have come so far, as the rendezvous in this process knows.
  void arrived(std::span<const Rank> ranks) noexcept;

 private:
  void end() noexcept;

  std::shared_ptr<const void> owner_;
  MakingSlot* slot_ = nullptr;
};

}  // namespace falcon::instrument
