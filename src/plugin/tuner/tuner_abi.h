// What all versions of NCCL's tuner plugin interface have in common, written from its documented facts. Plain C types:
// plugins that are built here include these headers too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/plugin_abi.h"

namespace falcon::plugin {

/// Rows and columns of the table of costs.
enum TunerAlgorithm : int { treeAlgorithm, ringAlgorithm, collnetDirect, collnetChain, nvls, nvlsTree, pat };
enum TunerProtocol : int { protocolLl, protocolLl128, protocolSimple };
inline constexpr int tunerAlgorithms = 7, tunerProtocols = 3;
inline constexpr int tunerLinks = 3, tunerScales = 3;
/// In the table: this cannot be, or is not to be, chosen.
inline constexpr float ignoredCost = -1.0F;

/// ncclFunc_t. Sends and receives are not tuned.
enum class TunedFunction : int {
  broadcast = 0,
  reduce = 1,
  allGather = 2,
  reduceScatter = 3,
  allReduce = 4,
};

/// `costs` are tunerAlgorithms rows of tunerProtocols floats in one piece, in microseconds: NCCL hands it on as a
/// pointer to pointers, and plugins cast it back.
using GetCollInfo = ResultCode (*)(void* context, TunedFunction function, std::size_t bytes, int operations,
                                   float** costs, int algorithms, int protocols, int registered, int* channels);

struct NvlDomains {
  int domains;
  int fewestRanks;
  int mostRanks;
};

/// What NCCL estimates with, by compute capabilities, of which there are more in later versions.
template <int capabilities>
struct TunerConstants {
  double baseLatencies[tunerAlgorithms][tunerProtocols];
  double hardwareLatencies[tunerLinks][tunerAlgorithms][tunerProtocols];
  double llBandwidths[capabilities][tunerScales];
  double ringLl128Bandwidths[capabilities][tunerScales];
  double treeLl128Bandwidths[capabilities][tunerScales];
  double treeBandwidths[capabilities][tunerScales];
  double nvlsTreeBandwidths[capabilities][tunerScales];
};

}  // namespace falcon::plugin
