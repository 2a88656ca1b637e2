// Which ports of which devices NCCL_IB_HCA allows, with NCCL's rules. Pure.
#pragma once

#include <string_view>

namespace falcon::net {

/// @param rule  entries `name` or `name:port`, with commas between; `^` in front of all excludes them, `=` (after it)
///              wants exact names, else they are beginnings of names. Empty: all
bool allowsPort(std::string_view rule, std::string_view device, int port);

}  // namespace falcon::net
