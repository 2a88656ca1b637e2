#include "verbs/gid_choice.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "base/format.h"

namespace falcon::net {
namespace {

/// ::ffff:a.b.c.d
bool isOfIpv4(const ibv_gid& gid) {
  return std::all_of(gid.raw, gid.raw + 10, [](std::uint8_t byte) { return byte == 0; }) && gid.raw[10] == 0xff &&
         gid.raw[11] == 0xff;
}

bool isOfLinkOnly(const ibv_gid& gid) {
  return gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
}

/// Smaller is better.
auto rankOf(const ibv_gid_entry& entry) {
  const int reach = isOfIpv4(entry.gid) ? 0 : isOfLinkOnly(entry.gid) ? 2 : 1;
  return std::tuple(entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 0 : 1, reach, entry.gid_index);
}

}  // namespace

bool isZero(const ibv_gid& gid) {
  return std::all_of(std::begin(gid.raw), std::end(gid.raw), [](std::uint8_t byte) { return byte == 0; });
}

std::optional<std::uint32_t> chooseGid(std::span<const ibv_gid_entry> gids) {
  const ibv_gid_entry* best = nullptr;
  for (const ibv_gid_entry& entry : gids)
    if (!isZero(entry.gid) && (!best || rankOf(entry) < rankOf(*best))) best = &entry;
  return best ? std::optional(best->gid_index) : std::nullopt;
}

std::string textOf(const ibv_gid& gid) {
  if (isOfIpv4(gid)) return fmt::format("{}.{}.{}.{}", gid.raw[12], gid.raw[13], gid.raw[14], gid.raw[15]);
  std::string text;
  for (std::size_t i = 0; i < 16; i += 2)
    text += fmt::format("{}{:02x}{:02x}", i > 0 ? ":" : "", gid.raw[i], gid.raw[i + 1]);
  return text;
}

}  // namespace falcon::net
