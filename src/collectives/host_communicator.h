// A communicator of the host engine.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/engine.h"
#include "bootstrap/communicator_network.h"
#include "transport/local_ports.h"

namespace falcon::collectives {

/// What a member publishes about itself at init.
struct MemberInfo {
  transport::Peer peer;
  std::string host;
  int pid = 0;
  int device = 0;
  std::string extra;  ///< opaque: control's bus contact rides along
};

/// What the application asks for. Of channels; 0: no wish. NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS come first.
struct CommunicatorWish {
  int fewestChannels = 0;
  int mostChannels = 0;
  std::string name = {};  ///< what it calls the communicator; "": nothing
};

class OneSided;

class HostCommunicator : public Engine {
 public:
  /// Blocking; collective over the network's members. `extra` is carried to all members (see MemberInfo).
  static Result<std::unique_ptr<HostCommunicator>> create(std::shared_ptr<transport::Reactor> reactor,
                                                          std::shared_ptr<bootstrap::CommunicatorNetwork> network,
                                                          int device, const EngineHooks& hooks, std::string extra,
                                                          const CommunicatorWish& wish = {});

  /// The part of this communicator that has this rank: of those of its colour, by key and then by rank; null for a
  /// negative one. Collective over all of it.
  virtual Result<std::unique_ptr<HostCommunicator>> split(int color, int key, const CommunicatorWish& wish) = 0;
  /// Without the ranks of `excluded` (valid, in rising order, not this one), which do not call. `despiteFailure`:
  /// running operations are stopped first, and a broken communicator will do. Collective over the rest, all with equal
  /// arguments.
  virtual Result<std::unique_ptr<HostCommunicator>> shrink(std::span<const Rank> excluded, bool despiteFailure,
                                                           const CommunicatorWish& wish) = 0;

  virtual const std::vector<MemberInfo>& members() const = 0;
  virtual bootstrap::CommunicatorNetwork& network() = 0;
  /// For validation's own connections (Lane::test, Lane::probe). Thread-safe. Who holds them may use them when the
  /// communicator is gone.
  virtual const std::shared_ptr<transport::Ports>& ports() = 0;

  /// Messages into windows that other ranks have registered.
  virtual OneSided& oneSided() = 0;
  /// A window that this rank was to register and could not: the others count it all the same.
  virtual void missWindow() = 0;
  /// What the other ranks know this window of registerWindow() by. Errors (invalidUsage): there is none.
  virtual Result<std::uint64_t> numberOf(const char* function, const void* window) const = 0;

  /// The ring in force for the next collective: ranks of the communicator.
  virtual std::vector<Rank> ringOrder() const = 0;
  /// Re-route, first phase: from collective `fromCollective` on, rings would follow `order`. Refused (invalidUsage)
  /// when that collective has started here, when `order` is no permutation, or when another proposal is undecided.
  /// Until decideRing() the start of collectives >= fromCollective waits (not forever: abort, failure and destruction
  /// end the wait). Any thread.
  virtual Status proposeRing(std::uint64_t fromCollective, std::vector<Rank> order) = 0;
  /// Second phase: commit puts the proposal in force, otherwise it is forgotten; waiting starts go on.
  virtual void decideRing(std::uint64_t fromCollective, bool commit) = 0;
};

}  // namespace falcon::collectives
