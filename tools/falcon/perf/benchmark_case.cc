#include "perf/benchmark_case.h"

namespace falcon::perf {

const std::vector<CollectiveRow>& collectiveRows() {
  static const std::vector<CollectiveRow> rows = {{Collective::allReduce, "all_reduce", true, false},
                                                  {Collective::allGather, "all_gather", false, false},
                                                  {Collective::reduceScatter, "reduce_scatter", true, false},
                                                  {Collective::broadcast, "broadcast", false, true},
                                                  {Collective::reduce, "reduce", true, true},
                                                  {Collective::allToAll, "alltoall", false, false},
                                                  {Collective::gather, "gather", false, true},
                                                  {Collective::scatter, "scatter", false, true},
                                                  {Collective::sendReceive, "sendrecv", false, false}};
  return rows;
}

std::optional<CollectiveRow> findCollective(const std::string& name) {
  for (const CollectiveRow& row : collectiveRows())
    if (name == row.name) return row;
  return std::nullopt;
}

Counts countsFor(Collective collective, size_t bytes, size_t elementSize, int ranks) {
  const size_t elements = bytes / elementSize;
  const size_t each = elements / static_cast<size_t>(ranks);
  const size_t all = each * static_cast<size_t>(ranks);
  switch (collective) {
    case Collective::allGather:
      return {each, each, all, each};
    case Collective::reduceScatter:
      return {each, all, each, each};
    case Collective::allToAll:
      return {each, all, all, each};
    case Collective::gather:
      return {each, each, all, each};
    case Collective::scatter:
      return {each, all, each, each};
    default:
      return {elements, elements, elements, elements};
  }
}

InPlaceOffsets inPlaceOffsets(Collective collective, const Counts& counts, int rank) {
  const size_t mine = counts.parameter * static_cast<size_t>(rank);
  switch (collective) {
    case Collective::allGather:
    case Collective::gather:
      return {mine, 0};
    case Collective::reduceScatter:
    case Collective::scatter:
      return {0, mine};
    default:
      return {0, 0};
  }
}

double busFactor(Collective collective, int ranks) {
  const double n = ranks;
  switch (collective) {
    case Collective::allReduce:
      return 2 * (n - 1) / n;
    case Collective::allGather:
    case Collective::reduceScatter:
    case Collective::allToAll:
    case Collective::gather:
    case Collective::scatter:
      return (n - 1) / n;
    default:
      return 1;
  }
}

namespace {

const char* at(const void* base, size_t elements, size_t elementSize) {
  return static_cast<const char*>(base) + elements * elementSize;
}
char* at(void* base, size_t elements, size_t elementSize) {
  return static_cast<char*>(base) + elements * elementSize;
}

}  // namespace

ncclResult_t launch(Collective collective, const Buffers& buffers, const Counts& counts, ncclDataType_t type,
                    ncclRedOp_t op, int root, int rank, int ranks, size_t elementSize, ncclComm_t communicator) {
  const size_t count = counts.parameter;
  switch (collective) {
    case Collective::allReduce:
      return ncclAllReduce(buffers.send, buffers.receive, count, type, op, communicator, nullptr);
    case Collective::allGather:
      return ncclAllGather(buffers.send, buffers.receive, count, type, communicator, nullptr);
    case Collective::reduceScatter:
      return ncclReduceScatter(buffers.send, buffers.receive, count, type, op, communicator, nullptr);
    case Collective::broadcast:
      return ncclBroadcast(buffers.send, buffers.receive, count, type, root, communicator, nullptr);
    case Collective::reduce:
      return ncclReduce(buffers.send, buffers.receive, count, type, op, root, communicator, nullptr);
    default:
      break;
  }
  // As in nccl-tests, the rest are groups of sends and receives.
  ncclGroupStart();
  ncclResult_t result = ncclSuccess;
  const auto send = [&](int peer, size_t offset) {
    if (result == ncclSuccess)
      result = ncclSend(at(buffers.send, offset, elementSize), count, type, peer, communicator, nullptr);
  };
  const auto receive = [&](int peer, size_t offset) {
    if (result == ncclSuccess)
      result = ncclRecv(at(buffers.receive, offset, elementSize), count, type, peer, communicator, nullptr);
  };
  if (collective == Collective::sendReceive) {
    send((rank + 1) % ranks, 0);
    receive((rank + ranks - 1) % ranks, 0);
  }
  for (int peer = 0; peer < ranks && collective != Collective::sendReceive; ++peer) {
    const size_t offset = count * static_cast<size_t>(peer);
    if (collective == Collective::allToAll) send(peer, offset), receive(peer, offset);
    if (collective == Collective::gather && rank == root) receive(peer, offset);
    if (collective == Collective::scatter && rank == root) send(peer, offset);
  }
  if (collective == Collective::gather) send(root, 0);
  if (collective == Collective::scatter) receive(root, 0);
  const ncclResult_t ended = ncclGroupEnd();
  return result == ncclSuccess ? ended : result;
}

}  // namespace falcon::perf
