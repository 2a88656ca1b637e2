// What a member publishes about itself at init, and what all derive from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/cores.h"
#include "base/cpu_cgroup.h"
#include "base/wire.h"
#include "collectives/algorithm_preference.h"
#include "collectives/host_communicator.h"
#include "transport/peer_memory.h"

namespace falcon::collectives {

void write(WireWriter& writer, const MemberInfo& info);
/// Errors (remote): there is none.
Result<MemberInfo> readMemberInfo(WireReader& reader);

/// MemberInfo with what the ranks must agree on.
struct MemberOffer {
  MemberInfo info;
  std::uint64_t chunkBytes = 0;
  int fewestChannels = 1;
  int mostChannels = 1;
  bool choseChannels = false;  ///< the application or a variable did
  CoreSet cores;
  CpuQuota quota;  ///< 0 cores: none
  PreferenceMasks preferred;
  std::string tuning;  ///< rank 0: the text of its tuning file, "" without
  bool checksCalls = false;
  std::string network;              ///< name of the one that it would use between nodes
  std::string board;                ///< rank 0: name of a NodeBoard, "" without
  transport::MemoryOffer memory{};  ///< how others read this process

  std::string encode() const;
  /// Errors (remote): bytes that are no offer.
  static Result<MemberOffer> decode(std::string_view bytes);
};

/// The node's number of every rank, in order of first appearance.
std::vector<int> nodesOf(const std::vector<MemberInfo>& members);
/// Of at least one member.
int countOfNodes(const std::vector<MemberInfo>& members);

/// All on one node, and none has switched shared memory off.
bool shareNode(const std::vector<MemberOffer>& offers);

/// The most ranks for each core that they share: ranks of one node with the same cores share these, and ranks of one
/// cgroup its quota.
double mostRanksPerCore(const std::vector<MemberOffer>& offers);

}  // namespace falcon::collectives
