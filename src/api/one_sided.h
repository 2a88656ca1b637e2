// One-sided messages of the host engine, checked and ready to run: alone, in a group or on a host stream.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "api/communicator.h"
#include "api/host_stream.h"
#include "collectives/one_sided.h"

namespace falcon::api {

/// Either sends `message`, or waits for signals.
struct OneSidedWork {
  const char* function = nullptr;  ///< for messages
  std::shared_ptr<CommunicatorUse> use;
  bool waits = false;
  collectives::OneSidedMessage message;
  std::vector<collectives::AwaitedSignals> signals;
  std::shared_ptr<HostStream> hostStream;  ///< null: it is complete on return
};

/// Runs them in order, each after what is queued for its communicator; those on a stream are queued there. Gives the
/// first error, after which nothing more is done.
Status runOneSided(std::span<const OneSidedWork> works);

}  // namespace falcon::api
