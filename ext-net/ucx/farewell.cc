#include "ucx/farewell.h"

#include <sys/socket.h>

#include "base/wire.h"

namespace falcon::net {

Farewell::Farewell(FileDescriptor socket) : line_(std::move(socket)) {
  word_.want(sizeof(std::uint64_t));
}

void Farewell::say(std::uint64_t done) {
  // Nothing was sent over it for long, so there is room.
  static_cast<void>(send(line_.socket(), &done, sizeof done, MSG_NOSIGNAL | MSG_DONTWAIT));
}

Farewell::Heard Farewell::look() {
  using Progress = transport::ExactReader::Progress;
  if (!done_) {
    const auto progress = word_.read(line_.socket());
    if (progress == Progress::incomplete) return {};
    if (progress == Progress::ended) return {std::nullopt, word_.problem()};
    done_ = WireReader(word_.bytes()).get<std::uint64_t>();
  }
  return {done_, line_.problem()};
}

}  // namespace falcon::net
