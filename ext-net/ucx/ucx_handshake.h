// Carries the handshake (transport/handshake.h), which wants a socket, over UCX.
#pragma once

#include <array>

#include "base/owned.h"
#include "ucx/ucx_end.h"

namespace falcon::net {

/// Bytes go from one end of a socket pair, which the handshake has, to the other end's, by messages of their own. Used
/// by one thread at a time.
class UcxHandshake {
 public:
  /// Error (system): no descriptors.
  static Result<std::unique_ptr<UcxHandshake>> make(UcxEnd& end);
  /// Before the end goes.
  ~UcxHandshake();
  UcxHandshake(const UcxHandshake&) = delete;
  UcxHandshake& operator=(const UcxHandshake&) = delete;

  /// For Greeting or Challenge.
  int socket() const { return handshakes_.get(); }
  /// Moves what can be moved now.
  void progress();
  /// All that the handshake wrote has been sent.
  bool isAllSent();
  /// Neither end believes the other any more, or the other is gone: the handshake reads the end of its socket.
  void hangUp() { ours_.reset(); }

 private:
  UcxHandshake(UcxEnd& end, FileDescriptor handshakes, FileDescriptor ours)
      : end_(end), handshakes_(std::move(handshakes)), ours_(std::move(ours)) {}

  /// The last message is.
  bool isSent();

  UcxEnd& end_;
  const FileDescriptor handshakes_;
  FileDescriptor ours_;
  std::array<char, 512> out_{}, in_{};
  void* sending_ = nullptr;
  void* receiving_ = nullptr;
};

}  // namespace falcon::net
