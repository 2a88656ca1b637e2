// What one rank knows of the others of its communicator, connected or not: who they are, how bytes reach them, how many
// have left, and what it takes to share memory with them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "transport/doorbell.h"
#include "transport/local_ports.h"
#include "transport/shared_segment.h"

namespace falcon::transport {

/// name(), medium() and bytesSentTo() are thread-safe; for the rest the caller has a lock.
class KnownPeers {
 public:
  KnownPeers(Rank self, std::vector<Peer> peers);

  std::size_t size() const { return peers_.size(); }
  bool has(Rank peer) const { return peer >= 0 && static_cast<std::size_t>(peer) < peers_.size(); }
  const Peer& operator[](Rank peer) const { return peers_[static_cast<std::size_t>(peer)]; }
  /// For messages: "rank 3 (10.0.0.2:4000)".
  std::string name(Rank peer) const { return describe(peer, (*this)[peer]); }

  Medium mediumTo(Rank peer) const;
  std::atomic<std::uint64_t>& bytesSentTo(Rank peer) { return stateOf(peer).bytesSent; }
  std::uint64_t bytesSentTo(Rank peer) const {
    return states_.at(static_cast<std::size_t>(peer)).bytesSent.load(std::memory_order_relaxed);
  }

  /// Memory to offer to the peer. Null where it cannot be had; then the two go on by sockets.
  std::shared_ptr<SharedSegment> segmentFor(Rank peer, std::size_t chunkBytes);
  /// The peer's, of one that shares memory; null where it cannot be had.
  std::shared_ptr<Doorbell> doorbellOf(Rank peer);
  /// Says why, once.
  void stopSharingWith(Rank peer, std::string_view reason);

  const std::shared_ptr<Doorbell>& ownDoorbell() const { return ownDoorbell_; }

 private:
  struct State {
    std::atomic<std::uint64_t> bytesSent{0};
    std::atomic<bool> sharesMemory{false};
    std::shared_ptr<Doorbell> doorbell;  // once mapped
  };

  State& stateOf(Rank peer) { return states_[static_cast<std::size_t>(peer)]; }

  const Rank self_;
  const std::vector<Peer> peers_;
  const std::shared_ptr<Doorbell> ownDoorbell_{&processDoorbell(), [](Doorbell*) {}};  // lives as long as the process
  std::deque<State> states_;
};

}  // namespace falcon::transport
