#include "verbs/port_counters.h"

#include <cmath>
#include <optional>

#include "base/text.h"

namespace falcon::net {

void readPortCounters(const std::string& folder, falconNetDevice_v1& reading, DeviceCounts& counts) {
  const auto counter = [&](const char* file) { return leadingNumber<std::uint64_t>(readText(folder + "/" + file)); };
  const auto put = [&](std::optional<std::uint64_t> value, std::uint64_t& to, std::uint32_t bit) {
    if (!value) return;
    to = *value;
    reading.valid |= bit;
  };
  constexpr std::uint64_t octets = 4;  // that port_xmit_data counts as one
  if (const auto words = counter("counters/port_xmit_data"))
    put(*words * octets, reading.interfaceBytes, FALCON_NET_INTERFACE);
  put(counter("counters/port_xmit_wait"), reading.transmitWait, FALCON_NET_TRANSMIT_WAIT);
  put(counter("hw_counters/rp_cnp_handled"), reading.congestionNotifications, FALCON_NET_CNP);
  put(counter("hw_counters/out_of_sequence"), reading.outOfSequence, FALCON_NET_OUT_OF_SEQUENCE);
  if (const auto errors = counter("hw_counters/packet_seq_err"))
    put(*errors + counter("hw_counters/implied_nak_seq_err").value_or(0), reading.negativeAcknowledgements,
        FALCON_NET_NAKS);
  counts.packetsSent = counter("counters/port_xmit_packets").value_or(0);
  counts.timeouts = counter("hw_counters/local_ack_timeout_err").value_or(0);
}

int speedOf(const std::string& rate) {
  const auto gigabits = leadingNumber<double>(rate);
  return gigabits && rate.find("Gb/sec") != std::string::npos ? static_cast<int>(std::lround(*gigabits * 1000)) : 0;
}

}  // namespace falcon::net
