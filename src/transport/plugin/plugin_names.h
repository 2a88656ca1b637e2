// NCCL_NET_PLUGIN: which libraries it means. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace falcon::transport::net {

/// As many as NCCL takes.
inline constexpr std::size_t mostPlugins = 14;

/// The names of the list, in its order, without empty ones; "none" names nothing.
std::vector<std::string> pluginNames(std::string_view list);

/// What to open for a name, in this order: the name itself, and for what is neither a path nor a library's file name,
/// `libnccl-net-<name>.so`. One empty text: the program itself, for STATIC_PLUGIN.
std::vector<std::string> filesOf(const std::string& name);

/// Names of networks are compared so.
bool sameWithoutCase(std::string_view one, std::string_view other);

}  // namespace falcon::transport::net
