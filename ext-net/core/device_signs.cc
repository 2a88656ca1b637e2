#include "core/device_signs.h"

#include <algorithm>

#include "core/counters.h"

namespace falcon::net {
namespace {

/// InfiniBand counts words of four bytes as it counts ticks: of a port that is never held, one word a tick at most.
constexpr double octetsOfATick = 4;
/// A receiver sends one notification for a connection in so many nanoseconds at most, however many packets were marked
/// (DCQCN's usual setting).
constexpr double notificationInterval = 50'000;
/// As the share of marked segments of TCP: of the intervals, those that have a notification.
constexpr double notificationsScale = 0.05;
/// RDMA sends all again from the lost packet on: one in a thousand costs a large part of the rate.
constexpr double deviceLossesScale = 0.001;

}  // namespace

DeviceSigns signsOf(const DeviceReading& before, const DeviceReading& now) {
  const auto knows = [&](std::uint32_t what) { return (before.state.valid & now.state.valid & what) == what; };
  DeviceSigns signs;
  if (knows(FALCON_NET_TRANSMIT_WAIT | FALCON_NET_INTERFACE)) {
    const double held = grown(now.state.transmitWait, before.state.transmitWait);
    const double sent = grown(now.state.interfaceBytes, before.state.interfaceBytes) / octetsOfATick;
    signs.held = ratio(held, held + sent);
  }
  if (knows(FALCON_NET_CNP)) {
    const double intervals = static_cast<double>(now.state.taken - before.state.taken) / notificationInterval;
    const double notifications = grown(now.state.congestionNotifications, before.state.congestionNotifications);
    signs.contention = ratio(ratio(notifications, intervals), notificationsScale);
  }
  if (knows(FALCON_NET_NAKS)) {
    const double losses = grown(now.state.negativeAcknowledgements, before.state.negativeAcknowledgements) +
                          grown(now.counts.timeouts, before.counts.timeouts);
    const double packets = grown(now.counts.packetsSent, before.counts.packetsSent);
    signs.contention = std::max(signs.contention, ratio(ratio(losses, packets), deviceLossesScale));
  }
  return signs;
}

}  // namespace falcon::net
