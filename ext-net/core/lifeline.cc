#include "core/lifeline.h"

#include <sys/socket.h>

#include <cerrno>

namespace falcon::net {

std::optional<int> Lifeline::problem() const {
  char byte = 0;
  const auto got = recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got == 0) return 0;
  if (got > 0) return EPROTO;
  if (errno == EAGAIN || errno == EINTR) return std::nullopt;
  return errno;
}

}  // namespace falcon::net
