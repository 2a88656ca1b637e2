// `falcon status --net`.
#pragma once

#include <string>

namespace falcon::jobs {

/// How congested the network is, by what the ranks' net plugins tell: a row a device and one for each connection that
/// is worth it.
/// @return  0; 1: there is no such job; 3: a connection is congested
int showNet(const std::string& name, bool asJson);

/// "healthy", "slow", "congested", "idle" of falconNetHealthy ...
const char* conditionName(int condition);

}  // namespace falcon::jobs
