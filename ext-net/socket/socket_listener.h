// Who waits for senders.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/doorman.h"
#include "core/network.h"

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

/// A connection is had when all of its sockets have come and have proven that they belong to the job (core/doorman.h).
class SocketListener final : public Listener {
 public:
  static Result<std::unique_ptr<Listener>> make(int device, const SocketAddress& address, Handle handle);

  SocketListener(int device, std::unique_ptr<Doorman> doorman) : device_(device), doorman_(std::move(doorman)) {}
  Result<std::unique_ptr<Connection>> accept() override;

 private:
  /// Of one connection.
  struct Gathering {
    std::vector<FileDescriptor> sockets;
    std::size_t missing = 0;
    std::string from;
    Nanoseconds since;
  };

  /// The number of the guest's connection where all of its sockets have come.
  std::optional<std::uint64_t> gather(Guest& guest, Nanoseconds now);

  const int device_;
  const std::unique_ptr<Doorman> doorman_;
  std::map<std::uint64_t, Gathering> gatherings_;
};

}  // namespace falcon::net
