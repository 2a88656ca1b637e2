#include "collectives/network_choice.h"

#include "base/log.h"
#include "base/net_parameters.h"
#include "base/parameters.h"
#include "plugin/plugin_names.h"
#include "transport/chunk_ring.h"
#include "transport/plugin/plugin_frame.h"
#include "transport/plugin/plugin_ports.h"

namespace falcon::collectives {

Result<NetworkChoice> NetworkChoice::choose(CommunicatorId communicator) {
  const auto chunkBytes = static_cast<std::size_t>(parameters::bufferSize.value()) / transport::chunkSlots;
  auto session = transport::net::processNets().open(communicator, parameters::network.value(),
                                                    transport::pluginMessageBytes(chunkBytes));
  if (!session) return session.error();
  return NetworkChoice(std::move(*session));
}

void NetworkChoice::agree(const std::vector<MemberOffer>& offers) {
  for (std::size_t rank = 1; rank < offers.size(); ++rank) {
    if (plugin::sameWithoutCase(offers[rank].network, offers[0].network)) continue;
    log::notice(
        "all ranks use sockets: rank 0's network is {}, rank {}'s is {}. Set NCCL_NET_PLUGIN and NCCL_NET alike, and "
        "install the plugin on every host",
        offers[0].network, rank, offers[rank].network);
    session_.reset();
    break;
  }
  log::info("Using network {}", name());
}

Result<std::unique_ptr<transport::Ports>> NetworkChoice::ports(std::shared_ptr<transport::Reactor> reactor,
                                                               const bootstrap::CommunicatorNetwork& network,
                                                               std::vector<transport::Peer> peers) const {
  auto ports = transport::makeLocalPorts(std::move(reactor), network.id(), network.secret(), network.rank(), peers);
  if (!ports || !session_) return ports;
  return transport::makePluginPorts(std::move(*ports), session_, network.id(), network.secret(), network.rank(),
                                    std::move(peers));
}

}  // namespace falcon::collectives
