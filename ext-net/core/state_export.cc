// The symbol by which others find what is known of the network: falcon_net_state.h.
#include <algorithm>
#include <exception>

#include "base/result.h"
#include "core/net_state.h"

namespace falcon::net {
namespace {

template <class State, class Read>
int copy(State* states, std::uint32_t room, std::uint32_t* count, const Read& read) {
  if (!count || (room > 0 && !states)) return static_cast<int>(ErrorCode::invalidArgument);
  try {
    const std::vector<State> all = read();
    std::copy_n(all.begin(), std::min<std::size_t>(room, all.size()), states);
    *count = static_cast<std::uint32_t>(all.size());
    return 0;
  } catch (const std::exception&) {
    return static_cast<int>(ErrorCode::system);
  }
}

int devices(falconNetDevice_v1* states, std::uint32_t room, std::uint32_t* count) {
  return copy(states, room, count, [] { return NetState::instance().devices(); });
}

int connections(falconNetConnection_v1* states, std::uint32_t room, std::uint32_t* count) {
  return copy(states, room, count, [] { return NetState::instance().connections(); });
}

}  // namespace
}  // namespace falcon::net

extern "C" {
[[gnu::visibility("default")]] extern const falconNetState_v1_t falconNetState_v1;
const falconNetState_v1_t falconNetState_v1 = {
    .plugin = falcon::net::networkName,
    .devices = falcon::net::devices,
    .connections = falcon::net::connections,
};
}
