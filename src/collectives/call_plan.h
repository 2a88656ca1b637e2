// What a call means for one rank: the tasks that run side by side, each on connections of its own. Pure.
#pragma once

#include <compare>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/call.h"
#include "base/result.h"
#include "collectives/algorithm.h"
#include "collectives/algorithm_preference.h"
#include "collectives/step_runner.h"
#include "collectives/tuning.h"

namespace falcon::collectives {

/// What planning must know of a communicator.
struct MemberShape {
  Rank rank = 0;
  int size = 1;
  int fewestChannels = 1;
  int mostChannels = 1;
  std::size_t chunkBytes = 1;            ///< of every connection
  PreferenceMasks preferred;             ///< algorithms
  std::shared_ptr<const Tuning> tuning;  ///< null: the built-in tables
  Extent extent = Extent::node;          ///< of all ranks together
  bool checksCalls = false;              ///< ranks compare what they call before they do it
  // Of the connections that have smaller ones.
  std::size_t messageChunkBytes = std::numeric_limits<std::size_t>::max();
  std::size_t directChunkBytes = std::numeric_limits<std::size_t>::max();
};

/// Tasks with the same key use the same connections: one after the other, in the order of submission.
struct QueueKey {
  enum class Kind : std::uint8_t { channel, send, receive, copy, board } kind = Kind::channel;
  int channel = 0;
  Rank peer = -1;
  auto operator<=>(const QueueKey&) const = default;
};

struct TaskPlan {
  QueueKey queue;
  RoundSource rounds;
  Operands operands;
};

/// The part of checkCall() that looks at the buffers.
Status checkBuffers(const MemberShape& shape, const Call& call);
/// Refuses what the engine cannot do or what would read beyond reason. Errors: invalidArgument, invalidUsage.
Status checkCall(const MemberShape& shape, const Call& call);

/// Most elements of one chunk of a message.
std::size_t messageChunkOf(const MemberShape& shape, const Call& call);
/// The same of collectives on Lane::direct.
std::size_t directChunkOf(const MemberShape& shape, const Call& call);

/// Buffers and kernels of a call.
Operands operandsOf(const MemberShape& shape, const Call& call);
/// Bytes of the larger of the two buffers: what the tables of algorithms go by.
std::size_t bytesOf(const MemberShape& shape, const Call& call);

/// How a collective is done over connections, by the table.
struct Way {
  const Algorithm* algorithm;  ///< null: as messages
  int channels;
};
/// `preferred`: of this call, as MemberShape::preferred has it of all; `channels`: how many, 0: as many as it is worth.
Way chooseWay(const MemberShape& shape, const Call& call, std::uint8_t preferred, int channels);
inline Way chooseWay(const MemberShape& shape, const Call& call) {
  return chooseWay(shape, call, shape.preferred[call.operation], 0);
}
/// The task of one of the channels; null where no elements are left for it.
std::optional<TaskPlan> planChannel(const MemberShape& shape, const Call& call, const Way& way, int channel,
                                    std::span<const Rank> ring);

/// One task a channel. `ring` outlives the plans; `channels` at least 1; the same arguments on all ranks.
std::vector<TaskPlan> planCollective(const MemberShape& shape, const Call& call, const Algorithm& algorithm,
                                     int channels, std::span<const Rank> ring);
/// The same in any way. As messages: one task each.
std::vector<TaskPlan> planCollective(const MemberShape& shape, const Call& call, const Way& way,
                                     std::span<const Rank> ring);
/// The same in the way that the table says.
inline std::vector<TaskPlan> planCollective(const MemberShape& shape, const Call& call, std::span<const Rank> ring) {
  return planCollective(shape, call, chooseWay(shape, call), ring);
}

/// Send or Receive, with another rank.
TaskPlan planMessage(const MemberShape& shape, const Call& call);
/// A message from this rank to itself; both have the same size in bytes.
TaskPlan planOwnMessage(const MemberShape& shape, const Call& send, const Call& receive);

}  // namespace falcon::collectives
