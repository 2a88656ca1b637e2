// How congested a connection is, from two readings of what it has counted: see falcon_net_state.h for the formula.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/device_signs.h"
#include "falcon_net_state.h"

namespace falcon::net {

/// What a judgement is made of, each 0..1; a score that somebody wonders about can be explained.
struct CongestionParts {
  double share = 0;  ///< of the time that the network was what data waited for
  double slowness = 0;
  double contention = 0;
};

struct Congestion {
  std::int32_t condition = falconNetUnknown;
  double score = 0;
  CongestionParts parts{};
};

/// Who else has sent over the connection's interface since its last reading.
struct OnTheInterface {
  double others = -1;    ///< share of other programs in what the interface has sent, 0..1; below 0: not known
  std::size_t ours = 1;  ///< connections of this process, with this one; 0: not known
};

/// A connection's history: its best rate and usual losses. Pure: time and counts come with the readings. Used under its
/// owner's lock.
class CongestionJudge {
 public:
  /// @param now    a reading of the same connection, not older than the last one
  /// @param signs  of the connection's device, over the same time
  /// @return        unknown at the first reading, where no data were sent since the last one, and where neither the
  ///                connection's round trip nor its device's signs are known
  Congestion judge(const falconNetConnection_v1& now, const OnTheInterface& beside, const DeviceSigns& signs = {});

 private:
  /// How far the rate of the last readings stayed below half of the best, 0..1; 0 where the network did not set it in
  /// all of them.
  /// @param sharing  connections of ours that share the interface: alone it would be that many times as fast, at most
  double rateLost(double rate, double share, std::size_t sharing);

  /// By how much the share of segments sent again, over the last ten readings, is beyond what is usual. 0 in the first
  /// ten, which are the usual ones.
  double lossesBeyondUsual(const falconNetConnection_v1& now);

  /// Since the connection was made.
  struct Sent {
    std::uint64_t segments = 0, again = 0;
  };

  falconNetConnection_v1 before_{};
  bool hasBefore_ = false;
  std::array<double, 5> recentRates_{};
  std::size_t readings_ = 0;
  std::size_t recentShare_ = 0;  // readings in a row in which the network set the rate
  double bestRate_ = 0;          // bytes/ns; falls slowly, so that a connection that is never as fast again is judged
                                 // by what it is now
  std::array<Sent, 10> recentSent_{};
  Sent firstSent_;
  double losses_ = 0, usualLosses_ = 0;  // shares of segments sent again, of the last readings and of the first
  int lossReadings_ = 0;
};

}  // namespace falcon::net
