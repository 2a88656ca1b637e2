// Who waits for senders.
#pragma once

#include <list>
#include <map>
#include <vector>

#include "base/clock.h"
#include "core/listener_handle.h"
#include "core/network.h"
#include "transport/drop_log.h"
#include "transport/handshake.h"

namespace falcon::net {

/// What who comes says of itself, once it is believed: which of a connection's sockets this is.
struct SocketGreeting {
  std::uint64_t connection = 0;  ///< random, of the dialling end
  std::uint16_t place = 0;
  std::uint16_t sockets = 0;

  static constexpr std::uint16_t mostSockets = 64;
  std::string text() const;
  /// Nothing: that is no greeting.
  static std::optional<SocketGreeting> read(std::string_view text);
};

/// A connection is had when all of its sockets have come and have proven that they know the handle's secret
/// (transport/handshake.h). Strangers are hung up on, and at most 256 that have not proven anything yet are kept, for
/// 10 s each.
class SocketListener final : public Listener {
 public:
  static Result<std::unique_ptr<Listener>> make(int device, const SocketAddress& address, Handle handle);

  SocketListener(int device, FileDescriptor socket, std::uint64_t number, const transport::Secret& secret);
  Result<std::unique_ptr<Connection>> accept() override;

 private:
  struct Arrival {
    FileDescriptor socket;
    std::string from;
    Nanoseconds since;
    transport::Challenge challenge{};
  };
  /// Of one connection.
  struct Gathering {
    std::vector<FileDescriptor> sockets;
    std::size_t missing = 0;
    std::string from;
    Nanoseconds since;
  };

  Status takeArrivals(Nanoseconds now);
  /// True: it is through with; then `done` has its connection's number where all of that have come.
  bool advance(Arrival& arrival, Nanoseconds now, std::optional<std::uint64_t>& done);
  bool gather(Arrival& arrival, Nanoseconds now, std::optional<std::uint64_t>& done);
  void dropped(const Arrival& arrival, std::string_view why, Nanoseconds now);

  const int device_;
  const FileDescriptor socket_;
  const std::uint64_t number_;
  const transport::Secret secret_;
  std::list<Arrival> arrivals_;
  std::map<std::uint64_t, Gathering> gatherings_;
  transport::DropLog dropLog_;
};

}  // namespace falcon::net
