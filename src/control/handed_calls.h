// The calls that a thread of the application's has handed to the vendor's library, while it is in that.
#pragma once

#include <cstdint>
#include <optional>

#include "control/told_call.h"

namespace falcon::control {

class HandedCalls {
 public:
  /// By the names that Falcon has for it: as it is in the call log.
  struct Named {
    CommunicatorId communicator = 0;
    std::uint64_t number = 0;
  };

  HandedCalls() = default;
  HandedCalls(const HandedCalls&) = delete;
  HandedCalls& operator=(const HandedCalls&) = delete;

  /// Of this thread's calls the one that the vendor tells of; nothing: it is none of them, or cannot be told from
  /// another.
  static std::optional<Named> callOf(const ToldCall& told) {
    HandedCalls* const handed = ofThisThread();
    return handed ? handed->find(told) : std::nullopt;
  }

 protected:
  virtual ~HandedCalls() {
    if (ofThisThread() == this) ofThisThread() = nullptr;
  }
  /// From now on they are this thread's.
  void areHanded() { ofThisThread() = this; }
  virtual std::optional<Named> find(const ToldCall& told) = 0;

 private:
  static HandedCalls*& ofThisThread() {
    static thread_local HandedCalls* current = nullptr;
    return current;
  }
};

}  // namespace falcon::control
