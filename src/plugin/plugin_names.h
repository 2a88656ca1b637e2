// NCCL_NET_PLUGIN, NCCL_PROFILER_PLUGIN, NCCL_TUNER_PLUGIN: which libraries they mean. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace falcon::plugin {

/// As many as NCCL takes.
inline constexpr std::size_t mostPlugins = 14;

/// The names of a list, in its order, without empty ones; "none" names nothing.
std::vector<std::string> pluginNames(std::string_view list);

/// What to open for a name, in this order: the name itself, and for what is neither a path nor a library's file name,
/// `libnccl-<kind>-<name>.so`. One empty text: the program itself, for STATIC_PLUGIN.
/// @param kind  "net", "profiler", "tuner"
std::vector<std::string> filesOf(std::string_view kind, const std::string& name);

/// Names of networks, and words of these variables, are compared so.
bool sameWithoutCase(std::string_view one, std::string_view other);

}  // namespace falcon::plugin
