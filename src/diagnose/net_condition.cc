#include "diagnose/net_condition.h"

#include "base/format.h"
#include "falcon_net_state.h"

namespace falcon::diagnose {

std::string sentenceOf(const NetCondition& network) {
  switch (network.condition) {
    case falconNetHealthy:
      return fmt::format("its net plugin finds the network healthy (score {:.2f})", network.score);
    case falconNetSlow:
      return fmt::format("its network is slow, and nobody else is seen to use it (score {:.2f})", network.score);
    case falconNetCongested:
      return fmt::format("its network is congested (score {:.2f})", network.score);
    default:
      return {};
  }
}

}  // namespace falcon::diagnose
