// What the kernel counts of an interface.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace falcon::net {

/// Bytes that it has sent, by the text of /proc/net/dev: two lines of headings, then `  eth0: bytes packets ...`, eight
/// columns of what came and eight of what was sent. Nothing: it is not there.
std::optional<std::uint64_t> sentBytes(std::string_view allInterfaces, std::string_view interface);

}  // namespace falcon::net
