// The lifeline of a connection over UCX, and what an end says over it when it closes in order.
#pragma once

#include <cstdint>
#include <optional>

#include "core/lifeline.h"
#include "transport/handshake.h"

namespace falcon::net {

/// An end's last word is how many of the connection's messages are done there. Those are done at the other end, too, or
/// will be; others never. Used by one thread at a time.
class Farewell {
 public:
  struct Heard {
    std::optional<std::uint64_t> done;  ///< the other end's last word
    std::optional<int> problem;         ///< as Lifeline's
  };

  explicit Farewell(FileDescriptor socket);
  /// Our last word, once. Where the other end is gone nobody is told.
  void say(std::uint64_t done);
  /// What has been heard by now. A system call.
  Heard look();

 private:
  Lifeline line_;
  transport::ExactReader word_;
  std::optional<std::uint64_t> done_;
};

}  // namespace falcon::net
