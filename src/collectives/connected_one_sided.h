// One-sided messages over connections: between nodes, and wherever ranks may not write into each other's memory.
#pragma once

#include <map>
#include <memory>

#include "collectives/one_sided_way.h"
#include "transport/local_ports.h"
#include "transport/window_connection.h"
#include "transport/window_inbox.h"

namespace falcon::collectives {

/// The sender connects to a peer with the first message to it. A thread of the peer's process puts what comes into the
/// window, counts the signal and answers; only then the sender goes on. So a signal is seen after the data that it
/// follows, and whatever a rank has sent is there before it leaves.
class ConnectedOneSided final : public OneSidedWay {
 public:
  /// `peers[r]` is rank r. The reactor outlives it.
  ConnectedOneSided(LocalMember& member, transport::Waiter& waiter, std::shared_ptr<transport::Reactor> reactor,
                    std::vector<transport::Peer> peers);

  void openWindow(std::uint64_t number, const void* address, std::size_t bytes) override;
  void closeWindow(std::uint64_t number) override;
  Status send(const char* function, const OneSidedMessage& message) override;
  std::uint64_t signalsFrom(Rank peer, int kind) const override;

 private:
  bool hasLeft(Rank peer) const override { return member_->network.hasLeft(peer); }
  Result<transport::WindowConnection*> connectionTo(const char* function, Rank peer);
  Result<transport::WindowAnswer> answerOf(const char* function, Rank peer, transport::WindowConnection& connection);
  Status judge(const char* function, const OneSidedMessage& message, const transport::WindowAnswer& answer);

  const std::shared_ptr<transport::Reactor> reactor_;
  const std::vector<transport::Peer> peers_;
  transport::WindowInbox inbox_;
  std::map<Rank, transport::WindowConnection> connections_;
};

}  // namespace falcon::collectives
