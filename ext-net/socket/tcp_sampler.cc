#include "socket/tcp_sampler.h"

#include <algorithm>

#include "transport/tcp_state.h"

namespace falcon::net {
namespace {

std::uint64_t count(Nanoseconds duration) {
  return static_cast<std::uint64_t>(duration.count());
}

}  // namespace

void TcpSampler::operator()(falconNetConnection_v1& reading) const {
  using transport::TcpState;
  std::uint32_t known = FALCON_NET_RTT | FALCON_NET_RETRANSMITS | FALCON_NET_DELIVERY_RATE | FALCON_NET_LIMITS |
                        FALCON_NET_ECN | FALCON_NET_WIRE_BYTES;
  for (const int socket : sockets_) {
    const auto state = transport::tcpState(socket);
    if (!state) return;  // then nothing of it all counts
    if (state->known < TcpState::Known::limits) known &= ~FALCON_NET_LIMITS;
    if (state->known < TcpState::Known::marks) known &= ~FALCON_NET_ECN;
    if (state->known < TcpState::Known::bytes) known &= ~FALCON_NET_WIRE_BYTES;
    if (state->leastRoundTrip == Nanoseconds(0)) known &= ~FALCON_NET_RTT;
    reading.rttNanoseconds = std::max(reading.rttNanoseconds, count(state->roundTrip));
    reading.rttVariationNanoseconds = std::max(reading.rttVariationNanoseconds, count(state->roundTripVariation));
    reading.rttLeastNanoseconds = std::max(reading.rttLeastNanoseconds, count(state->leastRoundTrip));
    reading.retransmits += state->retransmits;
    reading.segments += state->segments;
    reading.wireBytes += state->bytesSent;
    reading.deliveryRate += state->deliveryRate;
    reading.busyNanoseconds += count(state->busy);
    reading.receiverLimitedNanoseconds += count(state->receiverLimited);
    reading.bufferLimitedNanoseconds += count(state->bufferLimited);
    reading.delivered += state->delivered;
    reading.ecnMarked += state->marked;
  }
  reading.busyNanoseconds /= sockets_.size();
  reading.receiverLimitedNanoseconds /= sockets_.size();
  reading.bufferLimitedNanoseconds /= sockets_.size();
  reading.valid |= known;
}

}  // namespace falcon::net
