// What the nodes of the embedded bus send each other.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "bootstrap/bus.h"
#include "bootstrap/member.h"

namespace falcon::bootstrap {

/// How to reach a process, and the secret that it wants to see.
struct BusPeer {
  ProcessId id = 0;
  SocketAddress address{};
  transport::Secret secret{};
};

/// The key under which `target` expects connections that know `secret`.
std::uint64_t busKey(const transport::Secret& secret, ProcessId target);

/// Addresses besides process ids.
constexpr ProcessId theController = 0;
constexpr ProcessId everyone = ~ProcessId{0};

/// Process ids as a frame's bytes.
std::string packIds(const std::set<ProcessId>& ids);
std::set<ProcessId> unpackIds(std::string_view bytes);

struct BusFrame {
  enum class Kind : std::uint8_t {
    // Asking to become a member, and the answers.
    request,   ///< peers = {asker}; from = the controller that it lost, or 0; to = the one it leaves in order, or 0;
               ///< bytes = packIds() of those whose messages it may still pass on
    welcome,   ///< peers = all members, the controller first
    redirect,  ///< peers = {my controller}: ask there
    later,     ///< ask again soon
    declined,  ///< the asker has the lower id: this part will come to it
    // Within a part.
    text,    ///< bytes, from, to
    joined,  ///< peers = {who}
    left,    ///< from = who
    moveTo,  ///< peers = {the new controller}
    mark,    ///< from = who has moved: all it sent before the move is ahead of this
    markDone,
    bye,  ///< from = who leaves
    // How two parts come together; routed like texts.
    admit,    ///< secret: expect a connection that knows it
    handOver  ///< peers = {the new controller}, secret: what it expects
  };
  Kind kind = Kind::bye;
  ProcessId from = 0;
  ProcessId to = theController;
  std::string bytes{};
  std::vector<BusPeer> peers{};
  transport::Secret secret{};

  std::string encode() const;
  static bool decode(std::string_view bytes, BusFrame& frame);
};

}  // namespace falcon::bootstrap
