// Who listens for TCP connections (tcp_dialling.h) and lets in those that belong to the job.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/owned.h"
#include "core/listener_handle.h"
#include "transport/drop_log.h"
#include "transport/handshake.h"

namespace falcon::net {

/// One who has proven that it knows the handle's secret (transport/handshake.h).
struct Guest {
  FileDescriptor socket;
  std::string from;     ///< its address, for people
  std::string payload;  ///< what it said of itself
};

/// Strangers are hung up on, and at most 256 that have not proven anything yet are kept, for 10 s each. Used by one
/// thread at a time.
class Doorman {
 public:
  /// Listens, and writes into the handle what others need to come. Error (system): it cannot.
  static Result<std::unique_ptr<Doorman>> make(const SocketAddress& address, Handle handle);

  Doorman(FileDescriptor socket, std::uint64_t number, const transport::Secret& secret);
  /// Nothing: nobody yet. Never blocks. Error (system): who has come cannot be let in.
  Result<std::optional<Guest>> next(Nanoseconds now);
  /// Says why one is hung up on, but not a thousand times.
  void dropped(const std::string& from, std::string_view why, Nanoseconds now);

 private:
  struct Arrival {
    FileDescriptor socket;
    std::string from;
    Nanoseconds since;
    transport::Challenge challenge{};
    bool isChallenged = false;
  };
  enum class Step { waits, proven, stranger };

  std::optional<Guest> proven(Nanoseconds now);
  Status takeArrivals(Nanoseconds now);
  Step advance(Arrival& arrival, Nanoseconds now);

  const FileDescriptor socket_;
  const std::uint64_t number_;
  const transport::Secret secret_;
  std::list<Arrival> arrivals_;
  transport::DropLog dropLog_;
};

}  // namespace falcon::net
