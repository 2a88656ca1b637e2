#include "base/random.h"

#include <sys/random.h>

#include <cerrno>

#include "base/system_error.h"

namespace falcon {

Status fillRandom(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Error::system("the kernel gives no random bytes: {}", reasonOf(got < 0 ? errno : EIO));
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

}  // namespace falcon
