// What the members of a communicator agree on at its making: all compute the same from everybody's offers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bootstrap/communicator_network.h"
#include "collectives/call_plan.h"
#include "collectives/direct_setup.h"
#include "collectives/host_communicator.h"
#include "collectives/member_info.h"
#include "collectives/network_choice.h"
#include "collectives/tuning.h"

namespace falcon::collectives {

/// Everybody's, by rank; `choice` and `direct` give their parts of this rank's. Blocking, collective.
Result<std::vector<MemberOffer>> exchangeOffers(transport::Reactor& reactor, bootstrap::CommunicatorNetwork& network,
                                                int device, std::string extra, const CommunicatorWish& wish,
                                                const NetworkChoice& choice, DirectSetup& direct);

/// What suits all members, whatever their environments say.
MemberShape agreedShape(const bootstrap::CommunicatorNetwork& network, const std::vector<MemberOffer>& offers);

/// Rank 0's rows for where the ranks are; null: the built-in tables. An error where this rank's library cannot follow
/// them: it would choose otherwise than the others, and wait for ever.
Result<std::shared_ptr<const Tuning>> agreedTuning(const std::vector<MemberOffer>& offers, Extent extent);

}  // namespace falcon::collectives
