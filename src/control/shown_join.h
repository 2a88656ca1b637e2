// The ranks of a communicator meet, and who looks from outside sees how far they are; where they meet is agreed on.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "bootstrap/communicator_network.h"
#include "bootstrap/unique_id.h"
#include "instrument/making.h"

namespace falcon::control {

/// bootstrap::join() within NCCL_FALCON_INIT_TIMEOUT; `making` shows who has come to the rendezvous that this process
/// holds, and that all have. It may be of nobody.
Result<std::shared_ptr<bootstrap::CommunicatorNetwork>> joinShown(const std::shared_ptr<transport::Reactor>& reactor,
                                                                  const bootstrap::UniqueId& id, Rank rank, int size,
                                                                  instrument::Making& making,
                                                                  const std::function<bool()>& givenUp);

/// The id by which a communicator grows, which one of its ranks knows at least, for all of them. Collective over them.
Result<bootstrap::UniqueId> agreedId(bootstrap::CommunicatorNetwork& network,
                                     const std::optional<bootstrap::UniqueId>& mine, const bootstrap::GivenUp& givenUp);

}  // namespace falcon::control
