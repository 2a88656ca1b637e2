// Before it is harmed a victim is watched for some seconds; whoever does not want the injection any more is heard then.
#pragma once

#include "base/clock.h"
#include "base/result.h"

namespace falcon::tools {

/// Waits that long. An error as soon as SIGINT, SIGTERM or SIGHUP is pending, which the caller has blocked; the signal
/// stays so.
Status watchFor(Nanoseconds time);

}  // namespace falcon::tools
