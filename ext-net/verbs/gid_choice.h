// Which of its addresses (GIDs) a RoCE port sends from. Pure.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace falcon::net {

/// The index of the best one: RoCE v2, which goes through routers, before v1; then an IPv4 address before an IPv6 one,
/// and that before one of the link only; then the lowest index. Nothing: there is none.
std::optional<std::uint32_t> chooseGid(std::span<const ibv_gid_entry> gids);

/// "fe80:0000:0000:0000:...", or "10.1.0.2" for an IPv4 address.
std::string textOf(const ibv_gid& gid);

bool isZero(const ibv_gid& gid);

}  // namespace falcon::net
