#include "rank_run.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <span>
#include <thread>

#include "buffers.h"
#include "nccl_falcon.h"

namespace falcon::property {
namespace {

#define FALCON_TRY(call)                                           \
  if (const ncclResult_t result_ = (call); result_ != ncclSuccess) \
  return std::string(#call) + " gave " + ncclGetErrorString(result_) + ": " + ncclGetLastError(nullptr)

/// Groups that wait on a stream at a time.
constexpr std::size_t mostQueued = 8;

/// One thing that this rank does in a group.
struct Action {
  enum class Kind { collective, send, receive } kind;
  Buffers* buffers;
};

std::string act(const Action& action, ncclComm_t comm, ncclFalconStream_t stream, std::vector<ncclRedOp_t>& ops) {
  Buffers& buffers = *action.buffers;
  const CallSpec& call = buffers.call();
  if (action.kind == Action::Kind::send) {
    FALCON_TRY(ncclSend(buffers.send(), call.count, call.type, call.root, comm, stream));
    return "";
  }
  if (action.kind == Action::Kind::receive) {
    FALCON_TRY(ncclRecv(buffers.receive(), call.count, call.type, call.from, comm, stream));
    return "";
  }
  auto op = static_cast<ncclRedOp_t>(call.reduction);
  if (reduces(call.what) && call.reduction == preMulSum) {
    const auto residence = call.seed & 1 ? ncclScalarHostImmediate : ncclScalarDevice;
    FALCON_TRY(ncclRedOpCreatePreMulSum(&op, buffers.scalar(), call.type, residence, comm));
    ops.push_back(op);
  }
  const void* send = buffers.send();
  void* receive = buffers.receive();
  switch (call.what) {
    case What::allReduce:
      FALCON_TRY(ncclAllReduce(send, receive, call.count, call.type, op, comm, stream));
      break;
    case What::reduce:
      FALCON_TRY(ncclReduce(send, receive, call.count, call.type, op, call.root, comm, stream));
      break;
    case What::reduceScatter:
      FALCON_TRY(ncclReduceScatter(send, receive, call.count, call.type, op, comm, stream));
      break;
    case What::allGather:
      FALCON_TRY(ncclAllGather(send, receive, call.count, call.type, comm, stream));
      break;
    case What::broadcast:
      FALCON_TRY(ncclBroadcast(send, receive, call.count, call.type, call.root, comm, stream));
      break;
    case What::allToAll:
      FALCON_TRY(ncclAlltoAll(send, receive, call.count, call.type, comm, stream));
      break;
    case What::gather:
      FALCON_TRY(ncclGather(send, receive, call.count, call.type, call.root, comm, stream));
      break;
    default:
      FALCON_TRY(ncclScatter(send, receive, call.count, call.type, call.root, comm, stream));
  }
  return "";
}

/// A lane's communicator and what is done with it.
class Lane {
 public:
  Lane(const World& world, int lane, int worldRank, ncclComm_t comm, Common& common)
      : world_(world), lane_(lane), worldRank_(worldRank), comm_(comm), common_(common), own_(worldRank, lane) {}

  std::string run(const GroupSource& source) {
    FALCON_TRY(ncclCommUserRank(comm_, &rank_));
    FALCON_TRY(ncclCommCount(comm_, &ranks_));
    if (world_.streams) FALCON_TRY(ncclFalconStreamCreate(&stream_));
    const std::vector<Group> groups = source(lane_, ranks_);
    for (std::size_t next = 0; next < groups.size() && !common_.failed.load();) {
      const std::size_t many = std::min(world_.streams ? mostQueued : 1, groups.size() - next);
      std::string wrong = runInARow(std::span(groups).subspan(next, many), next);
      if (!wrong.empty())
        return "rank " + std::to_string(rank_) + " of " + std::to_string(ranks_) + ", communicator " +
               std::to_string(lane_) + ": " + wrong;
      next += many;
    }
    if (world_.streams) FALCON_TRY(ncclFalconStreamDestroy(stream_));
    return "";
  }

 private:
  /// A group with its memory.
  struct Work {
    Work(const Group& group, int rank, int ranks) {
      for (const CallSpec& call : group) all.emplace_back(call, rank, ranks);
    }
    std::deque<Buffers> all;
    std::vector<std::uint64_t> digests;
  };

  /// Groups one after the other; on a stream all are queued before the first is looked at.
  std::string runInARow(std::span<const Group> groups, std::size_t first) {
    std::deque<Work> row;
    for (const Group& group : groups) row.emplace_back(group, rank_, ranks_);
    // Now and then once more with the same inputs: the bits must be the same.
    const int times = groups[0][0].seed % 4 == 0 ? 2 : 1;
    for (int time = 0; time < times; ++time) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        common_.reached[lane_][worldRank_].store(static_cast<int>(first + i));
        for (Buffers& buffers : row[i].all) buffers.reset();
        // Some are late.
        if (own_.oneIn(64)) std::this_thread::sleep_for(std::chrono::microseconds(own_.below(3000)));
        std::string wrong = runActions(row[i].all);
        if (!wrong.empty()) return "group " + std::to_string(first + i) + ": " + wrong;
      }
      if (stream_) FALCON_TRY(ncclFalconStreamSynchronize(stream_));
      for (std::size_t i = 0; i < row.size(); ++i) {
        std::string wrong = look(row[i], time);
        if (wrong.empty() && time == 0) wrong = compareWithOthers(row[i], static_cast<int>(first + i));
        if (!wrong.empty()) return "group " + std::to_string(first + i) + ": " + wrong;
      }
    }
    return "";
  }

  static std::string look(Work& work, int time) {
    for (std::size_t i = 0; i < work.all.size(); ++i) {
      std::string wrong = work.all[i].wrong();
      const std::uint64_t digest = work.all[i].digest();
      if (wrong.empty() && time > 0 && digest != work.digests[i]) wrong = "the second time other bits came out";
      if (!wrong.empty()) return textOf(work.all[i].call()) + ": " + wrong;
      if (time == 0) work.digests.push_back(digest);
    }
    return "";
  }

  /// Collectives in the common order, messages between two ranks in theirs; else as chance will have it.
  std::string runActions(std::deque<Buffers>& all) {
    std::map<std::pair<Action::Kind, int>, std::deque<Action>> queues;
    for (Buffers& buffers : all) {
      const CallSpec& call = buffers.call();
      if (call.what != What::message) {
        queues[{Action::Kind::collective, 0}].push_back({Action::Kind::collective, &buffers});
        continue;
      }
      if (call.from == rank_) queues[{Action::Kind::send, call.root}].push_back({Action::Kind::send, &buffers});
      if (call.root == rank_) queues[{Action::Kind::receive, call.from}].push_back({Action::Kind::receive, &buffers});
    }
    std::vector<ncclRedOp_t> ops;
    const CallSpec& first = all[0].call();
    // A message to oneself needs both ends at once.
    const bool grouped = all.size() > 1 || (first.what == What::message && first.from == first.root) || own_.oneIn(8);
    if (grouped) FALCON_TRY(ncclGroupStart());
    while (!queues.empty()) {
      auto queue = queues.begin();
      std::advance(queue, own_.below(queues.size()));
      std::string wrong = act(queue->second.front(), comm_, stream_, ops);
      if (!wrong.empty()) return wrong;
      queue->second.pop_front();
      if (queue->second.empty()) queues.erase(queue);
    }
    if (grouped) FALCON_TRY(ncclGroupEnd());
    for (const ncclRedOp_t op : ops) FALCON_TRY(ncclRedOpDestroy(op, comm_));
    return "";
  }

  std::string compareWithOthers(const Work& work, int index) {
    if (index >= Common::digestCount) return "";
    std::uint64_t together = 0;
    for (std::size_t i = 0; i < work.all.size(); ++i)
      if (work.all[i].call().what == What::allReduce) together = mix(together ^ work.digests[i]) | 1;
    if (together == 0) return "";
    // The halves of the last lane are two communicators.
    std::uint64_t first = 0;
    auto& slot = common_.digests[lane_][lane_ == 2 ? worldRank_ % 2 : 0][index];
    if (slot.compare_exchange_strong(first, together) || first == together) return "";
    return textOf(work.all[0].call()) + (work.all.size() > 1 ? " or an AllReduce beside it" : "") +
           ": this rank has other bits than another";
  }

  const World& world_;
  const int lane_, worldRank_;
  const ncclComm_t comm_;
  Common& common_;
  Choices own_;  // of this rank alone
  int rank_ = 0, ranks_ = 1;
  ncclFalconStream_t stream_ = nullptr;
};

/// Runs all lanes at once, each on a thread; the first of any rank that finds something says so in `common`.
void runLanes(const World& world, int rank, Common& common, const GroupSource& groups, const ncclComm_t* comms) {
  const auto run = [&](int lane) {
    const std::string wrong = Lane(world, lane, rank, comms[lane], common).run(groups);
    if (wrong.empty()) return;
    common.fail(wrong);
    // The other lanes of this rank shall not wait for ever.
    for (int other = 0; other < world.lanes; ++other) ncclCommRevoke(comms[other], NCCL_REVOKE_DEFAULT);
  };
  std::vector<std::thread> threads;
  for (int lane = 1; lane < world.lanes; ++lane) threads.emplace_back(run, lane);
  run(0);
  for (std::thread& thread : threads) thread.join();
}

std::string joinAndRun(const World& world, int rank, Common& common, const GroupSource& groups) {
  if (rank == 0) {
    FALCON_TRY(ncclGetUniqueId(&common.id));
    common.idReady.store(1);
  }
  while (common.idReady.load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ncclComm_t comms[mostLanes] = {};
  FALCON_TRY(ncclCommInitRank(&comms[0], world.ranks, common.id, rank));
  if (world.lanes > 1) FALCON_TRY(ncclCommSplit(comms[0], 0, static_cast<int>(mix(rank) % 1000), &comms[1], nullptr));
  if (world.lanes > 2) FALCON_TRY(ncclCommSplit(comms[0], rank % 2, -rank, &comms[2], nullptr));
  runLanes(world, rank, common, groups, comms);
  if (common.failed.load()) {
    for (ncclComm_t comm : comms) ncclCommAbort(comm);  // the other ranks stop too
    return "";
  }
  for (ncclComm_t comm : comms) FALCON_TRY(ncclCommDestroy(comm));
  return "";
}

}  // namespace

void Common::fail(const std::string& what) {
  if (failed.exchange(1) == 0) what.copy(failure, sizeof failure - 1);
}

void runRank(const World& world, int rank, Common& common, const GroupSource& groups) {
  const std::string wrong = joinAndRun(world, rank, common, groups);
  if (!wrong.empty()) common.fail("rank " + std::to_string(rank) + ": " + wrong);
}

}  // namespace falcon::property
