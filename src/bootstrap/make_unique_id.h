// Makes the ids that ranks meet by, and opens the rendezvous that an id names.
#pragma once

#include <cstdint>
#include <string_view>

#include "bootstrap/unique_id.h"

namespace falcon::bootstrap {

/// The id that every process derives from an address that all know, as with NCCL_COMM_ID, and the job's secret ("":
/// none). `series` tells several rendezvous at one address apart.
UniqueId idOfFixedAddress(const SocketAddress& address, std::string_view secret, std::uint16_t series = 0);
bool hasFixedAddress(const UniqueId& id);

/// NCCL_COMM_ID names the rendezvous: every process makes the id by itself, and all make the same.
bool isRendezvousFixed();
/// For ncclGetUniqueId: starts the rendezvous in this process's reactor and names it. With NCCL_COMM_ID every process
/// gets the same id and the rank 0 of the communicator opens the rendezvous in join().
Result<UniqueId> makeUniqueId();
/// Nobody will join by it: ends its rendezvous if this process has it.
void dropUniqueId(const UniqueId& id);
/// One that this process shares with itself: NCCL_COMM_ID means nothing here.
Result<UniqueId> makeOwnUniqueId();

}  // namespace falcon::bootstrap
