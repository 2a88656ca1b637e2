#include "transport/known_peers.h"

#include "base/log.h"
#include "transport/chunk_ring.h"

namespace falcon::transport {

KnownPeers::KnownPeers(Rank self, std::vector<Peer> peers)
    : self_(self), peers_(std::move(peers)), states_(peers_.size()) {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank)
    states_[rank].sharesMemory = mayShareMemory((*this)[self_], peers_[rank]);
}

Medium KnownPeers::mediumTo(Rank peer) const {
  if (peer == self_) return Medium::self;
  return states_.at(static_cast<std::size_t>(peer)).sharesMemory ? Medium::sharedMemory : Medium::socket;
}

std::shared_ptr<SharedSegment> KnownPeers::segmentFor(Rank peer, std::size_t chunkBytes) {
  if (mediumTo(peer) != Medium::sharedMemory || !doorbellOf(peer)) return nullptr;
  auto segment = SharedSegment::create(ChunkRing::bytesFor(chunkBytes));
  if (segment) return std::make_shared<SharedSegment>(std::move(*segment));
  stopSharingWith(peer, segment.error().message());
  return nullptr;
}

std::shared_ptr<Doorbell> KnownPeers::doorbellOf(Rank peer) {
  auto& doorbell = stateOf(peer).doorbell;
  if (doorbell) return doorbell;
  if ((*this)[peer].process == *processIdentity()) return doorbell = ownDoorbell_;
  auto opened = Doorbell::open((*this)[peer].doorbell);
  if (opened)
    doorbell = std::move(*opened);
  else
    stopSharingWith(peer, opened.error().message());
  return doorbell;
}

void KnownPeers::stopSharingWith(Rank peer, std::string_view reason) {
  if (stateOf(peer).sharesMemory.exchange(false))
    log::notice("no shared memory with {}, though it is on this node: {}; sockets are used", name(peer), reason);
}

}  // namespace falcon::transport
