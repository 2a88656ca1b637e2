#include "transport/connection_offer.h"

#include "base/wire.h"
#include "transport/striped_port.h"

namespace falcon::transport {

std::string ConnectionOffer::encode() const {
  WireWriter out;
  out.put(channel)
      .put(lane)
      .put(chunkBytes)
      .put(segment)
      .put(doorbell)
      .put(stream)
      .put(streams)
      .put(std::uint8_t{bothWays});
  return out.take();
}

Result<ConnectionOffer> ConnectionOffer::decode(std::string_view bytes) {
  WireReader in(bytes);
  ConnectionOffer offer;
  offer.channel = in.get<int>();
  offer.lane = in.get<Lane>();
  offer.chunkBytes = in.get<std::uint64_t>();
  offer.segment = in.getString();
  offer.doorbell = in.getString();
  offer.stream = in.get<int>();
  offer.streams = in.get<int>();
  offer.bothWays = in.get<std::uint8_t>() != 0;
  const bool streamsFit = offer.stream >= 0 && offer.stream < offer.streams && offer.streams <= mostStreams &&
                          (offer.streams == 1 || offer.segment.empty()) &&
                          !(offer.bothWays && (offer.streams > 1 || !offer.segment.empty()));
  if (!in.finished() || !streamsFit || offer.channel < 0 || offer.channel >= channelLimit || offer.lane > Lane::probe)
    return Error::remote("an offer of {} bytes for a connection cannot be read", bytes.size());
  return offer;
}

std::uint64_t inboxKey(CommunicatorId communicator, Rank rank) {
  // splitmix64's finaliser: neighbouring ranks get unrelated keys.
  std::uint64_t bits = communicator + 0x9e3779b97f4a7c15 * (static_cast<std::uint64_t>(rank) + 1);
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

}  // namespace falcon::transport
