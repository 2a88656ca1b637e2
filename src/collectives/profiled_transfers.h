// What a profiler plugin is told of one task's transfers, as they happen: an operation of the proxy for each
// connection, and in it a step for each chunk.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "plugin/profiler/profiler_directory.h"

namespace falcon::collectives {

/// Whose events these are: a call's own event, and what the plugin wanted when the call began.
struct ProfiledCall {
  const plugin::ProfilerSession* session = nullptr;  ///< null: nobody wants any
  std::uint32_t mask = 0;
  std::uint64_t tag = 0;  ///< the caller's, of the call
  void* event = nullptr;  ///< of the collective or message

  bool wants(std::uint32_t bits) const { return (mask & bits) != 0; }
};

/// Used by one thread. Stops what it has started when it goes. A step that sends lasts until its bytes have left, as
/// far as is known: until the next one begins, or the last have left; one that receives until its bytes have been used.
class ProfiledTransfers {
 public:
  struct Size {
    int channel = 0;
    int steps = 1;  ///< about how many there will be
    int chunkBytes = 0;
  };

  ProfiledTransfers(const ProfiledCall& call, const Size& size) : call_(call), size_(size) {}
  ~ProfiledTransfers() { finish(); }
  ProfiledTransfers(const ProfiledTransfers&) = delete;
  ProfiledTransfers& operator=(const ProfiledTransfers&) = delete;

  /// The next step with this peer waits. `inFlight`: for bytes that are on their way, not for the receiver.
  void waits(Rank peer, bool sending, bool inFlight);
  /// A step has what it waited for; a negative rank: not in this direction.
  void begins(Rank receivingFrom, Rank sendingTo);
  /// It has moved these bytes.
  void ends(Rank receivedFrom, Rank sentTo, std::size_t bytes);
  /// All bytes have left.
  void finish();

 private:
  struct Operation {
    Rank peer;
    bool sending;
    void* event = nullptr;
    void* step = nullptr;
    bool moving = false;  // the step sends its bytes, all of which have been handed over
    plugin::EventState told = plugin::EventState::proxyOpInProgress;  // of the step
    int steps = 0;
  };

  Operation& of(Rank peer, bool sending);
  void openStep(Operation& operation);
  void closeStep(Operation& operation);
  void tell(Operation& operation, plugin::EventState state, std::size_t bytes);

  const ProfiledCall call_;
  const Size size_;
  std::vector<Operation> operations_;
};

}  // namespace falcon::collectives
