// This process as one rank of the job that `falcon run` started, over the host engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/host_communicator.h"
#include "validate/link_plan.h"

namespace falcon::doctor {

inline constexpr Nanoseconds joinLimit = 60s;
/// For what all ranks do at the same time: the slowest one decides.
inline constexpr Nanoseconds stepLimit = 120s;

struct RankWorld {
  std::shared_ptr<transport::Reactor> reactor;
  std::unique_ptr<collectives::HostCommunicator> communicator;

  Rank rank() const { return communicator->rank(); }
  int size() const { return communicator->size(); }
  bootstrap::CommunicatorNetwork& network() const { return communicator->network(); }
  std::vector<validate::RankSite> sites() const;
};

/// RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say who we are; without RANK we are alone. Collective.
Result<RankWorld> joinWorld();

/// A communicator of those ranks of the world that call with the same colour; null for a negative one. Collective.
Result<std::unique_ptr<collectives::HostCommunicator>> partOf(const RankWorld& world, int colour);

/// Seconds of one all-reduce of these floats in place.
Result<double> timeAllReduce(collectives::HostCommunicator& communicator, std::vector<float>& values);

}  // namespace falcon::doctor
