// Members tell each other who they are where no host communicator is made of them: Falcon looks on, the vendor moves.
#pragma once

#include <string>
#include <vector>

#include "bootstrap/communicator_network.h"
#include "collectives/host_communicator.h"

namespace falcon::collectives {

/// What all members are, by rank. Blocking; collective. `device` and `extra` as in MemberInfo.
Result<std::vector<MemberInfo>> exchangeMembers(bootstrap::CommunicatorNetwork& network, int device, std::string extra);

}  // namespace falcon::collectives
