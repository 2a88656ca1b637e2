#include "gpu/unique_id_room.h"

#include <algorithm>
#include <cstring>

#include "base/first_time.h"
#include "base/log.h"
#include "bootstrap/make_unique_id.h"
#include "bootstrap/random.h"

namespace falcon::gpu {
namespace {

/// ncclBootstrapHandle: magic, and an address as the kernel has it (facts: NCCL 2.18 to 2.32).
constexpr std::size_t vendorsBytes = 40;
constexpr std::size_t room = NCCL_UNIQUE_ID_BYTES - vendorsBytes;

/// Ours goes with this id of the vendor's, and with no other.
std::uint64_t sealOf(const ncclUniqueId& id) {
  return bootstrap::hashOf(std::string_view(id.internal, vendorsBytes));
}

}  // namespace

bool hasRoom(const ncclUniqueId& id) {
  return std::all_of(id.internal + vendorsBytes, std::end(id.internal), [](char byte) { return byte == 0; });
}

bool write(const bootstrap::UniqueId& ours, ncclUniqueId& id) {
  const std::array<char, NCCL_UNIQUE_ID_BYTES> bytes = ours.bytes(sealOf(id));
  if (std::any_of(bytes.begin() + room, bytes.end(), [](char byte) { return byte != 0; })) return false;
  std::copy_n(bytes.begin(), room, id.internal + vendorsBytes);
  return true;
}

std::optional<bootstrap::UniqueId> furnish(ncclUniqueId& id) {
  if (!hasRoom(id)) {
    if (firstTime("unique id without room"))
      log::notice("communicators of this unique id and others are not watched: the vendor uses all of it");
    return std::nullopt;
  }
  const auto ours = bootstrap::makeOwnUniqueId();
  if (!ours) {
    log::notice("communicators of this unique id are not watched: {}", ours.error().message());
    return std::nullopt;
  }
  if (write(*ours, id)) return *ours;
  bootstrap::dropUniqueId(*ours);
  return std::nullopt;
}

std::optional<bootstrap::UniqueId> read(const ncclUniqueId& id) {
  if (hasRoom(id)) return std::nullopt;
  std::array<char, NCCL_UNIQUE_ID_BYTES> bytes{};
  std::copy_n(id.internal + vendorsBytes, room, bytes.begin());
  if (!bootstrap::UniqueId::isOne(bytes)) return std::nullopt;
  auto ours = bootstrap::UniqueId::read(bytes, sealOf(id));
  if (ours) return *ours;
  log::notice("communicators of this unique id are not watched: Falcon's part of it: {}", ours.error().message());
  return std::nullopt;
}

}  // namespace falcon::gpu
