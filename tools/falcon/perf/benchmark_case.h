// One collective as nccl-tests measures it: how many elements go where, how to call it, and what must come out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "nccl.h"

namespace falcon::perf {

enum class Collective {
  allReduce,
  allGather,
  reduceScatter,
  broadcast,
  reduce,
  allToAll,
  gather,
  scatter,
  sendReceive
};

struct CollectiveRow {
  Collective collective;
  const char* name;  ///< as in nccl-tests' program names: "all_reduce"
  bool reduces;
  bool rooted;
};
/// All of them, in the order of the help text.
const std::vector<CollectiveRow>& collectiveRows();
std::optional<CollectiveRow> findCollective(const std::string& name);

/// Sizes in elements for one line of the table.
struct Counts {
  size_t parameter = 0;  ///< what the API call takes
  size_t send = 0;       ///< elements this rank's send buffer holds
  size_t receive = 0;
  size_t shown = 0;  ///< the "count" column
};
/// `bytes`: the "size" column, all ranks' bytes for AllGather, ReduceScatter, AlltoAll, Gather, Scatter.
Counts countsFor(Collective collective, size_t bytes, size_t elementSize, int ranks);

/// Where the in-place form's send and receive buffers lie in one buffer, in elements.
struct InPlaceOffsets {
  size_t send = 0;
  size_t receive = 0;
};
InPlaceOffsets inPlaceOffsets(Collective collective, const Counts& counts, int rank);

/// Bus bandwidth over algorithm bandwidth (nccl-tests, doc/PERFORMANCE.md).
double busFactor(Collective collective, int ranks);

struct Buffers {
  const void* send;
  void* receive;
};
/// The API call, or the group of sends and receives where nccl-tests uses one.
ncclResult_t launch(Collective collective, const Buffers& buffers, const Counts& counts, ncclDataType_t type,
                    ncclRedOp_t op, int root, int rank, int ranks, size_t elementSize, ncclComm_t communicator);

}  // namespace falcon::perf
