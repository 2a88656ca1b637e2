#include "socket/dialling.h"

#include <algorithm>

#include "base/random.h"
#include "socket/socket_listener.h"
#include "transport/descriptor_limit.h"

namespace falcon::net {

Status Dialling::begin() {
  const auto connection = randomValue<std::uint64_t>();
  if (!connection) return log::decided(connection.error());
  const Status room = transport::reserveDescriptors(2 * sockets_, "a connection");
  if (!room) return log::decided(room.error());
  for (std::size_t place = 0; place < sockets_; ++place)
    attempts_.emplace_back(
        handle(), from_,
        SocketGreeting{*connection, static_cast<std::uint16_t>(place), static_cast<std::uint16_t>(sockets_)}.text());
  return {};
}

Result<std::optional<std::vector<FileDescriptor>>> Dialling::progress() {
  if (attempts_.empty())
    if (const Status begun = begin(); !begun) return begun.error();
  for (TcpDialling& attempt : attempts_)
    if (const Status advanced = attempt.progress(); !advanced) return advanced.error();
  if (!std::all_of(attempts_.begin(), attempts_.end(), [](const TcpDialling& one) { return one.isThrough(); })) {
    if (!isOverdue(SystemClock::instance().now())) return std::optional<std::vector<FileDescriptor>>();
    return log::decided(overdue());
  }
  std::vector<FileDescriptor> sockets;
  for (TcpDialling& attempt : attempts_) sockets.push_back(attempt.take());
  return std::optional(std::move(sockets));
}

}  // namespace falcon::net
