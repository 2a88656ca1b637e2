// The way into one peer's windows, for who cannot write into its memory: one message after another, each answered.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/owned.h"
#include "base/result.h"
#include "transport/link_throttle.h"
#include "transport/port.h"
#include "transport/window_wire.h"

namespace falcon::transport {

/// Used by one thread at a time; never blocks.
class WindowConnection {
 public:
  /// @param socket    connected to the peer's WindowInbox
  /// @param peerName  for messages: "rank 3"
  /// @param throttle  null: as fast as it goes
  WindowConnection(FileDescriptor socket, std::string peerName, std::shared_ptr<LinkThrottle> throttle)
      : socket_(std::move(socket)), peerName_(std::move(peerName)), throttle_(std::move(throttle)) {}

  /// `from` has header.bytes bytes, which stay as they are until the answer has come. Only after the last answer.
  void begin(const WindowHeader& header, const std::byte* from);
  /// Moves what it can; true: the answer has come. Errors: remote (the peer has closed the connection).
  Result<bool> progress();
  const WindowAnswer& answer() const { return answer_; }
  WaitSource waitSource() const;

 private:
  std::size_t wanted() const { return sizeof header_ + header_.bytes; }
  Status send();
  Error closed(int problem) const;

  const FileDescriptor socket_;
  const std::string peerName_;
  const std::shared_ptr<LinkThrottle> throttle_;
  WindowHeader header_;
  const std::byte* from_ = nullptr;
  std::size_t sent_ = 0;
  bool throttled_ = false;
  WindowAnswer answer_;
  std::size_t answered_ = 0;  // bytes of it that have come
};

}  // namespace falcon::transport
