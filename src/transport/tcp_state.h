// What the kernel knows of a TCP connection.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace falcon::transport {

/// Of one socket. What is counted is since it was connected; what the kernel is too old to count is 0, and `known` says
/// so.
struct TcpState {
  /// Of the groups below, oldest kernels first: each has all of those before.
  enum class Known : std::uint8_t {
    basics,  ///< up to `inFlight`
    limits,  ///< Linux 4.10: up to `bufferLimited`
    marks,   ///< Linux 4.18: up to `marked`
    bytes,   ///< Linux 4.19: all
  };
  Known known = Known::basics;

  Nanoseconds roundTrip{0};  ///< smoothed
  Nanoseconds roundTripVariation{0};
  Nanoseconds leastRoundTrip{0};     ///< of the last five minutes; 0 before Linux 4.6
  Nanoseconds sinceAcknowledged{0};  ///< since the last acknowledgement came
  std::uint32_t retries = 0;         ///< of the oldest segment under way, in a row, by timeout
  std::uint32_t probes = 0;          ///< of a closed window of the receiver, since its last answer
  std::uint32_t retransmits = 0;     ///< segments, ever
  std::uint32_t inFlight = 0;        ///< segments sent and not acknowledged
  std::uint32_t segments = 0;        ///< sent
  std::uint32_t segmentsIn = 0;      ///< that came, of any kind; before Linux 4.2 always 0
  std::uint64_t deliveryRate = 0;    ///< bytes/s, of the last flight
  bool isAppLimited = false;         ///< that flight was shorter than it could have been: the rate is a lower bound

  Nanoseconds busy{0};  ///< bytes were under way or waiting to be
  Nanoseconds receiverLimited{0};
  Nanoseconds bufferLimited{0};

  std::uint32_t delivered = 0;  ///< segments
  std::uint32_t marked = 0;     ///< of them, those that came with a mark of congestion (ECN)

  std::uint64_t bytesSent = 0;  ///< without headers; what was sent again counts again
};

/// A system call, about a microsecond. Nothing: no TCP.
std::optional<TcpState> tcpState(int socket);

/// How long bytes of this socket have been on their way so far: sent, not acknowledged yet, and the receiver had room
/// for more. Nothing where the kernel does not count it (before Linux 4.10, or no TCP). A system call.
std::optional<Nanoseconds> underWay(int socket);

}  // namespace falcon::transport
