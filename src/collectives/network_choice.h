// Which network a communicator's ranks use between nodes, and how they agree on it. Takes no round of messages of its
// own.
#pragma once

#include <memory>
#include <vector>

#include "bootstrap/communicator_network.h"
#include "collectives/member_info.h"
#include "transport/plugin/net_directory.h"

namespace falcon::collectives {

/// One rank's part, at the making of a communicator: choose(), offer(), exchange the offers, agree(), ports().
class NetworkChoice {
 public:
  /// By NCCL_NET_PLUGIN and NCCL_NET. Errors (invalidUsage): NCCL_NET names none that can be used here.
  static Result<NetworkChoice> choose(CommunicatorId communicator);

  void offer(MemberOffer& mine) const { mine.network = name(); }
  /// Where ranks have chosen differently, all use sockets: a rank that lacks a plugin cannot be reached by it.
  void agree(const std::vector<MemberOffer>& offers);

  Result<std::unique_ptr<transport::Ports>> ports(std::shared_ptr<transport::Reactor> reactor,
                                                  const bootstrap::CommunicatorNetwork& network,
                                                  std::vector<transport::Peer> peers) const;

 private:
  explicit NetworkChoice(std::shared_ptr<transport::net::NetSession> session) : session_(std::move(session)) {}
  const char* name() const { return session_ ? session_->calls().name() : transport::net::socketNetwork; }

  std::shared_ptr<transport::net::NetSession> session_;  // null: sockets
};

}  // namespace falcon::collectives
