#include "transport/tcp_state.h"

#include <linux/tcp.h>  // netinet/tcp.h ends before the times
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

namespace falcon::transport {
namespace {

constexpr socklen_t bytesWithLimits = offsetof(tcp_info, tcpi_sndbuf_limited) + sizeof(tcp_info::tcpi_sndbuf_limited);
constexpr socklen_t bytesWithBytesSent = offsetof(tcp_info, tcpi_bytes_sent) + sizeof(tcp_info::tcpi_bytes_sent);
constexpr socklen_t bytesWithMarks = offsetof(tcp_info, tcpi_delivered_ce) + sizeof(tcp_info::tcpi_delivered_ce);

Nanoseconds microseconds(std::uint64_t count) {
  return std::chrono::microseconds(count);
}

}  // namespace

std::optional<TcpState> tcpState(int socket) {
  tcp_info its{};
  socklen_t length = sizeof its;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &its, &length) != 0) return std::nullopt;
  TcpState state;
  state.roundTrip = microseconds(its.tcpi_rtt);
  state.roundTripVariation = microseconds(its.tcpi_rttvar);
  // All ones until there was a sample.
  if (its.tcpi_min_rtt != ~0u) state.leastRoundTrip = microseconds(its.tcpi_min_rtt);
  state.sinceAcknowledged = std::chrono::milliseconds(its.tcpi_last_ack_recv);
  state.retries = its.tcpi_retransmits;
  state.probes = its.tcpi_probes;
  state.retransmits = its.tcpi_total_retrans;
  state.inFlight = its.tcpi_unacked;
  state.segments = its.tcpi_data_segs_out;
  state.segmentsIn = its.tcpi_segs_in;
  state.deliveryRate = its.tcpi_delivery_rate;
  state.isAppLimited = its.tcpi_delivery_rate_app_limited;
  if (length < bytesWithLimits) return state;
  state.known = TcpState::Known::limits;
  state.busy = microseconds(its.tcpi_busy_time);
  state.receiverLimited = microseconds(its.tcpi_rwnd_limited);
  state.bufferLimited = microseconds(its.tcpi_sndbuf_limited);
  if (length < bytesWithMarks) return state;
  state.known = TcpState::Known::marks;
  state.delivered = its.tcpi_delivered;
  state.marked = its.tcpi_delivered_ce;
  if (length < bytesWithBytesSent) return state;
  state.known = TcpState::Known::bytes;
  state.bytesSent = its.tcpi_bytes_sent;
  return state;
}

std::optional<Nanoseconds> underWay(int socket) {
  const auto state = tcpState(socket);
  if (!state || state->known < TcpState::Known::limits) return std::nullopt;
  // The kernel's busy time has those in it in which the receiver's window or our own buffer was the limit.
  return state->busy - std::min(state->busy, state->receiverLimited);
}

}  // namespace falcon::transport
