// What UCX's tags mean in a connection of ours.
#pragma once

#include <ucp/api/ucp.h>

namespace falcon::net {

/// Of data, the message's number.
inline constexpr ucp_tag_t handshakeTag = ucp_tag_t{1} << 63;
inline constexpr ucp_tag_t wholeTag = ~ucp_tag_t{0};

}  // namespace falcon::net
