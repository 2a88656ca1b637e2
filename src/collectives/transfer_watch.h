// Measures one task's transfers while profiling is on: for each connection, how long it moved bytes and how long it
// waited.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/recorders.h"
#include "collectives/profiled_transfers.h"
#include "transport/port.h"

namespace falcon::collectives {

/// Used by one thread. A sender that has no free slot because its bytes are still on their way counts as moving; one
/// whose receiver does not take them counts as waiting. A receiver with nothing there waits: whether the bytes are late
/// or slow only the sender knows.
class TransferWatch {
 public:
  /// `origin`: communicator, sequence and channel of the records. `recorded`: else tell() tells nothing.
  TransferWatch(const Clock& clock, const TransferTiming& origin, bool recorded = true)
      : clock_(clock), origin_(origin), recorded_(recorded) {}

  /// A profiler plugin is told of them as they happen, too.
  void tellLive(std::unique_ptr<ProfiledTransfers> live) { live_ = std::move(live); }

  void stuckReceiving(Rank peer) { stuck(peer, false, false); }
  void stuckSending(Rank peer, bool inFlight) { stuck(peer, true, inFlight); }
  /// What a step sends to this peer leaves by this port, which outlives the watch.
  void sendsBy(Rank peer, const transport::SendPort& port);
  /// A step begins: what it waited for is there. A negative rank: not in this direction.
  void stepBegins(Rank receivingFrom, Rank sendingTo);
  /// The step moved these bytes.
  void stepEnds(Rank receivedFrom, Rank sentTo, std::size_t bytes);
  /// The last bytes to all peers have left.
  void flushed();

  void tell(TransferRecorder& recorder) const;
  /// The task is over.
  void finish() {
    if (live_) live_->finish();
  }

 private:
  TransferTiming& of(Rank peer, bool sending);
  void stuck(Rank peer, bool sending, bool inFlight);

  const Clock& clock_;
  TransferTiming origin_;
  bool recorded_;
  std::vector<TransferTiming> transfers_;
  std::vector<const transport::SendPort*> ports_;  ///< each at its first use
  std::unique_ptr<ProfiledTransfers> live_;        ///< null: nobody wants to know
  Nanoseconds stepBegan_{0};
  Nanoseconds stuckSince_{0};
  Rank stuckPeer_ = -1;
  bool stuckSending_ = false;
  bool stuckInFlight_ = false;
};

}  // namespace falcon::collectives
