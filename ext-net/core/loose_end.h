// How two ends meet of which each must know something of the other before it can be connected: over TCP, proven.
//
//   who comes (meeting_dialling.h)          who is there (meeting_listener.h)
//   the handshake, with its facts  ---->    makes an end for it, connects that
//   connects its own               <----    its facts, their length before them
//   ready, once that has settled   ---->    both have a connection
//
// The TCP connection stays with the two ends (lifeline.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/owned.h"
#include "core/network.h"

namespace falcon::net {

/// One end of a connection that is being made.
class LooseEnd {
 public:
  virtual ~LooseEnd() = default;
  /// What the other end must know: at most transport::maximumHelloPayload bytes.
  virtual std::string facts() const = 0;
  /// Once, with what the other end says of itself. Errors (remote): that is none of this release's; (invalidUsage): the
  /// ends do not fit together; (system): it is refused.
  virtual Status connect(std::string_view facts, const std::string& peer) = 0;
  /// After that, again and again, until it says true: whether the way to the other end is made. Never blocks. Error
  /// (remote): it cannot be made.
  virtual Result<bool> settle() { return true; }
  /// Then: from now on it can receive. `socket` is where the ends have met.
  virtual Result<std::unique_ptr<Connection>> begin(FileDescriptor socket, std::string peer) = 0;
};

/// Why connect() takes no facts of another release. Says so.
inline Error ofAnotherRelease(const std::string& peer) {
  return log::decided(
      Error::remote("{} has another release of {}: it says of its end what is not understood here", peer, networkName));
}

/// Errors (system): there is none to be had.
using MakeLooseEnd = std::function<Result<std::unique_ptr<LooseEnd>>()>;

/// Said by the dialling end once it can receive; before that the other end sends nothing.
inline constexpr char ready = 'r';

}  // namespace falcon::net
