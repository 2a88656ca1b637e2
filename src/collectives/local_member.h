// One rank of one communicator, as the driver sees it.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/engine.h"
#include "bootstrap/communicator_network.h"
#include "collectives/call_plan.h"
#include "collectives/direct_member.h"
#include "collectives/direct_message.h"
#include "collectives/direct_runner.h"
#include "collectives/message_run.h"
#include "collectives/ring_schedule.h"
#include "collectives/step_run.h"
#include "collectives/tuned_way.h"
#include "plugin/profiler/profiler_directory.h"
#include "transport/ports.h"

namespace falcon::collectives {

/// Whether `next` is the same as `last` but for the buffers: training loops make the same call again and again, and to
/// check and plan it takes as long as to do it where it is short. No user op is ever kept as the last one.
inline bool isLike(const Call& last, const Call& next) {
  return next.count == last.count && next.operation == last.operation && next.type == last.type &&
         next.reduction == last.reduction && next.peer == last.peer;
}
/// The last call that went without connections.
struct LastDirect {
  Call call;
  DirectRunner runner;
};
/// The last one that went over connections: as LocalMember::steps planned it, or as an exchange of messages.
struct LastConnected {
  Call call;
  RingSchedule::Order ring;
  bool asMessages = false;
};

/// Everything that outlives a call. One thread at a time runs calls; health(), fail() and `rings` are thread-safe.
class LocalMember {
 public:
  /// Ports, network and hooks outlive the member.
  LocalMember(const MemberShape& shape, transport::Ports& ports, bootstrap::CommunicatorNetwork& network,
              const EngineHooks& hooks, std::vector<Rank> ring)
      : shape(shape), ports(ports), network(network), hooks(hooks), rings(std::move(ring)) {}

  /// Success, or what broke the communicator; from then on always that. Two loads while healthy.
  Status health() {
    if (isHealthy()) [[likely]]
      return {};
    return whatBroke();
  }
  bool isHealthy() const { return !broken_.load(std::memory_order_relaxed) && !network.isBroken(); }
  /// An error of this rank that the others cannot live with: breaks the communicator everywhere. Gives back what
  /// health() says from now on, which is the cause if one was known before.
  Error fail(const Error& error);

  /// Ends this rank's part in all operations; the network stays whole.
  void revoke();
  bool revoked() const { return revoked_.load(std::memory_order_relaxed); }

  CommunicatorId id() const { return network.id(); }

  const MemberShape shape;
  transport::Ports& ports;
  bootstrap::CommunicatorNetwork& network;
  const EngineHooks hooks;
  RingSchedule rings;
  std::unique_ptr<DirectMember> direct;               ///< null: the ranks share no board. Set before the first call.
  MessageRun messages;                                ///< of the calls that go the short way
  DirectMessages directMessages;                      ///< the same inside a node
  std::optional<LastDirect> lastDirect;               ///< the same
  StepRun steps;                                      ///< the same
  std::optional<LastConnected> lastConnected;         ///< the same; empty while `steps` has no call to be made again
  std::unique_ptr<const plugin::TunerSession> tuner;  ///< null: the tables decide. Set before the first call.
  std::shared_ptr<const plugin::ProfilerSession> profiler;  ///< null: there is none. Set before the first call.
  std::array<std::uint64_t, operationCount> callsTold{};    ///< by operation: how many a profiler knows or missed
  std::atomic<std::uint64_t> nextCollective{0};
  std::vector<std::uint64_t> sent = std::vector<std::uint64_t>(shape.size);      ///< messages so far, by peer
  std::vector<std::uint64_t> received = std::vector<std::uint64_t>(shape.size);  ///< the same

 private:
  Error whatBroke();
  void awaitCause() const;

  std::mutex mutex_;
  std::atomic<bool> broken_{false};
  std::atomic<bool> revoked_{false};
  std::optional<Error> error_;
};

/// Such messages move within the rank: each needs its counterpart in the same group.
inline bool isToOneself(const LocalMember& member, const Call& call) {
  return isPointToPoint(call.operation) && call.peer == member.shape.rank;
}

/// What would be wrong with this call now: errors of a broken communicator, invalidArgument, invalidUsage.
inline Status checkCall(LocalMember& member, const Call& call) {
  if (const Status healthy = member.health(); !healthy) return healthy;
  return checkCall(member.shape, call);
}

}  // namespace falcon::collectives
