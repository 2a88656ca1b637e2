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

/// How many channels the application asks for; 0: no wish. NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS come first.
struct ChannelWish {
  int fewest = 0;
  int most = 0;
};

class OneSided;

class HostCommunicator : public Engine {
 public:
  /// Blocking; collective over the network's members. `extra` is carried to all members (see MemberInfo). Parts of the
  /// communicator have its channels.
  static Result<std::unique_ptr<HostCommunicator>> create(std::shared_ptr<transport::Reactor> reactor,
                                                          std::shared_ptr<bootstrap::CommunicatorNetwork> network,
                                                          int device, const EngineHooks& hooks, std::string extra,
                                                          ChannelWish channels = {});

  virtual const std::vector<MemberInfo>& members() const = 0;
  virtual bootstrap::CommunicatorNetwork& network() = 0;
  /// For validation's own connections (Lane::test, Lane::probe). Thread-safe. Who holds them may use them when the
  /// communicator is gone.
  virtual const std::shared_ptr<transport::Ports>& ports() = 0;

  /// Messages into windows that other ranks have registered.
  virtual OneSided& oneSided() = 0;

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

/// What runGroup() would find wrong with the calls before anything happens. Nothing is changed.
Status checkGroup(std::span<const Submission> submissions);

/// Runs the calls of a group (or a single call) to completion, over any host communicators: all progress together.
/// Returns the first error. Host collectives with stream NULL are complete on return.
Status runGroup(std::span<const Submission> submissions);
/// The same for one call on no stream.
Status runOne(Engine& engine, const Call& call);

}  // namespace falcon::collectives
