// What a net plugin says of the network that a link goes over: is it slow, or are others in its way.
#pragma once

#include <string>

namespace falcon::diagnose {

/// It says where a slow link's time goes, and measures no slowness: nobody is named for it.
struct NetCondition {
  int condition = 0;  ///< falconNetHealthy ... of falcon_net_state.h
  double score = 0;   ///< 0 to 1, the worst while profiling
};

/// "its network is congested (score 0.83)", ...; "" for what is no condition.
std::string sentenceOf(const NetCondition& network);

}  // namespace falcon::diagnose
