// What work that failed says of the connection.
#pragma once

#include <infiniband/verbs.h>

#include <string>

#include "base/result.h"

namespace falcon::net {

/// Error (remote), or (system) where our own device refuses; not logged.
Error errorOf(const ibv_wc& completion, const std::string& peer);

}  // namespace falcon::net
