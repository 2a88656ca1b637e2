// Stands for the vendor's libnccl.so.2 where it matters that its work goes on on streams, and that a kernel which has
// started waits on the device, for ever if need be, until all ranks of its communicator have started theirs: calls only
// enqueue; a thread a stream plays the device. Sums and messages of 64-bit integers, between forked processes.
#include "harness/spinning_vendor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)
#include "nccl.h"
#pragma GCC visibility pop

using falcon::harness::SpinningArena;

struct ncclComm {
  int number, rank, size;
  std::uint64_t collectives = 0, splits = 0;
  std::uint64_t sent[falcon::harness::spinningRanks] = {}, received[falcon::harness::spinningRanks] = {};
};

namespace {

SpinningArena& arena() {
  static auto* const shared =
      reinterpret_cast<SpinningArena*>(std::strtoull(std::getenv(falcon::harness::spinningArenaVariable), nullptr, 16));
  return *shared;
}

int jobRank() {
  static const int rank = std::atoi(std::getenv("RANK"));
  return rank;
}

void doze() {
  std::this_thread::sleep_for(std::chrono::microseconds(50));
}

enum class Kind { sum, send, receive };

/// A call on the device. `number`: which of its series it is.
struct Kernel {
  Kind kind;
  int communicator, rank, size, peer;
  const std::int64_t* from;
  std::int64_t* to;
  std::size_t count;
  std::uint64_t number;
  bool started = false, done = false;
};

void copyOut(const SpinningArena::Data& data, Kernel& kernel) {
  std::copy_n(data.elements, kernel.count, kernel.to);
}

void copyIn(const Kernel& kernel, SpinningArena::Data& data) {
  data.count = kernel.count;
  std::copy_n(kernel.from, kernel.count, data.elements);
}

void advanceSum(SpinningArena::Communicator& shared, Kernel& kernel) {
  auto& mine = shared.members[kernel.rank];
  if (!kernel.started) {
    if (mine.ended.load() != kernel.number) return;
    copyIn(kernel, mine.input[kernel.number % 2]);
    mine.started.store(kernel.number + 1);
    kernel.started = true;
  }
  for (int rank = 0; rank < kernel.size; ++rank)
    if (shared.members[rank].started.load() <= kernel.number) return;
  std::int64_t sums[falcon::harness::spinningElements] = {};
  for (int rank = 0; rank < kernel.size; ++rank)
    for (std::size_t i = 0; i < kernel.count; ++i) sums[i] += shared.members[rank].input[kernel.number % 2].elements[i];
  std::copy_n(sums, kernel.count, kernel.to);
  mine.ended.store(kernel.number + 1);
  kernel.done = true;
}

/// Nothing is buffered: a send ends when the other side has taken it.
void advanceSend(SpinningArena::Message& message, Kernel& kernel) {
  if (!kernel.started) {
    if (message.taken.load() != kernel.number) return;
    copyIn(kernel, message.data);
    message.sent.store(kernel.number + 1);
    kernel.started = true;
  }
  kernel.done = message.taken.load() > kernel.number;
}

void advanceReceive(SpinningArena::Message& message, Kernel& kernel) {
  if (message.sent.load() <= kernel.number) return;
  copyOut(message.data, kernel);
  message.taken.store(kernel.number + 1);
  kernel.done = true;
}

void advance(Kernel& kernel) {
  auto& shared = arena().communicators[kernel.communicator];
  if (kernel.kind == Kind::sum) advanceSum(shared, kernel);
  if (kernel.kind == Kind::send) advanceSend(shared.messages[kernel.rank][kernel.peer], kernel);
  if (kernel.kind == Kind::receive) advanceReceive(shared.messages[kernel.peer][kernel.rank], kernel);
  if (kernel.done) arena().completed[jobRank()].fetch_add(1);
}

/// What was enqueued together works side by side, one batch after the other.
class Stream {
 public:
  Stream() : thread_([this] { work(); }) {}
  ~Stream() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void enqueue(std::vector<Kernel> batch) {
    arena().launched[jobRank()].fetch_add(static_cast<long>(batch.size()));
    const std::lock_guard lock(mutex_);
    batches_.push_back(std::move(batch));
    ++enqueued_;
    changed_.notify_all();
  }
  /// What is behind it waits for as long.
  void block(bool blocked) {
    const std::lock_guard lock(mutex_);
    blocked_ = blocked;
    changed_.notify_all();
  }
  /// Behind all that is enqueued now; outlives the stream.
  struct Progress {
    std::mutex mutex;
    std::vector<std::chrono::steady_clock::time_point> done;  // by batch
  };
  struct Mark {
    std::shared_ptr<Progress> progress;
    std::size_t batches = 0;
    std::chrono::steady_clock::time_point made = std::chrono::steady_clock::now();

    bool isReached() const {
      const std::lock_guard lock(progress->mutex);
      return progress->done.size() >= batches;
    }
    std::chrono::steady_clock::time_point reachedAt() const {
      const std::lock_guard lock(progress->mutex);
      return batches == 0 ? made : std::max(made, progress->done.at(batches - 1));
    }
  };
  Mark mark() {
    const std::lock_guard lock(mutex_);
    return {progress_, enqueued_};
  }
  void synchronize() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return batches_.empty(); });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stop_ || (!batches_.empty() && !blocked_); });
      if (batches_.empty() || blocked_) return;
      std::vector<Kernel>& batch = batches_.front();
      lock.unlock();
      const auto isDone = [](const Kernel& kernel) { return kernel.done; };
      while (!std::all_of(batch.begin(), batch.end(), isDone)) {
        for (Kernel& kernel : batch)
          if (!kernel.done) advance(kernel);
        doze();
      }
      lock.lock();
      batches_.pop_front();
      {
        const std::lock_guard done(progress_->mutex);
        progress_->done.push_back(std::chrono::steady_clock::now());
      }
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<Kernel>> batches_;
  std::size_t enqueued_ = 0;
  const std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  bool stop_ = false, blocked_ = false;
  std::thread thread_;
};

thread_local int groupDepth = 0;
thread_local std::vector<std::pair<Stream*, Kernel>> grouped;

void launchGrouped() {
  while (!grouped.empty()) {
    Stream* const stream = grouped.front().first;
    std::vector<Kernel> batch;
    for (const auto& [on, kernel] : grouped)
      if (on == stream) batch.push_back(kernel);
    std::erase_if(grouped, [&](const auto& each) { return each.first == stream; });
    stream->enqueue(std::move(batch));
  }
}

ncclResult_t submit(Kernel kernel, ncclDataType_t type, cudaStream_t stream) {
  if (type != ncclInt64 || kernel.count > falcon::harness::spinningElements) return ncclInvalidArgument;
  grouped.emplace_back(reinterpret_cast<Stream*>(stream), kernel);
  if (groupDepth == 0) launchGrouped();
  return ncclSuccess;
}

template <class Condition>
void waitFor(const Condition& condition) {
  while (!condition()) doze();
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default")))
#define FAKE_UNUSED(name, ...)          \
  FAKE ncclResult_t name(__VA_ARGS__) { \
    return ncclInvalidUsage;            \
  }

FAKE void* spinningStreamCreate() {
  return new Stream;
}
FAKE void spinningStreamSynchronize(void* stream) {
  static_cast<Stream*>(stream)->synchronize();
}
/// What was enqueued is finished first.
FAKE void spinningStreamDestroy(void* stream) {
  delete static_cast<Stream*>(stream);
}
FAKE void spinningStreamBlock(void* stream, bool blocked) {
  static_cast<Stream*>(stream)->block(blocked);
}
FAKE void* spinningMark(void* stream) {
  return new Stream::Mark(static_cast<Stream*>(stream)->mark());
}
FAKE bool spinningMarkReached(void* mark) {
  return static_cast<Stream::Mark*>(mark)->isReached();
}
FAKE std::int64_t spinningMarkNanoseconds(void* mark) {
  return static_cast<Stream::Mark*>(mark)->reachedAt().time_since_epoch().count();
}
FAKE void spinningMarkFree(void* mark) {
  delete static_cast<Stream::Mark*>(mark);
}

FAKE ncclResult_t pncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}
FAKE const char* pncclGetErrorString(ncclResult_t) {
  return "spinning error";
}
FAKE const char* pncclGetLastError(ncclComm_t) {
  return "";
}
FAKE ncclResult_t pncclGetUniqueId(ncclUniqueId* id) {
  const int number = arena().used.fetch_add(1);
  if (number >= falcon::harness::spinningCommunicators) return ncclSystemError;
  std::memset(id->internal, 0, sizeof id->internal);
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}
FAKE ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t*) {
  int number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  auto& shared = arena().communicators[number];
  shared.joined.fetch_add(1);
  waitFor([&] { return shared.joined.load() == size; });
  *comm = new ncclComm{.number = number, .rank = rank, .size = size};
  return ncclSuccess;
}
FAKE ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t*) {
  auto& shared = arena().communicators[comm->number];
  auto& mine = shared.members[comm->rank];
  const std::uint64_t round = ++comm->splits;
  const auto all = [&](auto counter) {
    waitFor([&] {
      return std::all_of(shared.members, shared.members + comm->size,
                         [&](const auto& member) { return (member.*counter).load() >= round; });
    });
  };
  mine.color = color;
  mine.key = key;
  mine.splits.store(round);
  all(&SpinningArena::Member::splits);
  std::vector<std::pair<int, int>> order;  // key, rank
  for (int rank = 0; rank < comm->size; ++rank)
    if (shared.members[rank].color == color) order.emplace_back(shared.members[rank].key, rank);
  std::sort(order.begin(), order.end());
  const bool leads = order[0].second == comm->rank;
  if (leads) mine.child = color < 0 ? -1 : arena().used.fetch_add(1);
  mine.splitsMade.store(round);
  all(&SpinningArena::Member::splitsMade);
  const int number = shared.members[order[0].second].child;
  mine.splitsDone.store(round);
  all(&SpinningArena::Member::splitsDone);  // nobody asks for the next one before all have read
  *child = nullptr;
  if (color < 0) return ncclSuccess;
  if (number >= falcon::harness::spinningCommunicators) return ncclSystemError;
  const auto place = std::find(order.begin(), order.end(), std::pair(key, comm->rank)) - order.begin();
  *child = new ncclComm{.number = number, .rank = static_cast<int>(place), .size = static_cast<int>(order.size())};
  return ncclSuccess;
}
FAKE ncclResult_t pncclCommFinalize(ncclComm_t) {
  return ncclSuccess;
}
FAKE ncclResult_t pncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
FAKE ncclResult_t pncclCommAbort(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
FAKE ncclResult_t pncclCommGetAsyncError(ncclComm_t, ncclResult_t* result) {
  *result = ncclSuccess;
  return ncclSuccess;
}
FAKE ncclResult_t pncclCommCount(ncclComm_t comm, int* count) {
  *count = comm->size;
  return ncclSuccess;
}
FAKE ncclResult_t pncclCommUserRank(ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
FAKE ncclResult_t pncclCommCuDevice(ncclComm_t, int* device) {
  *device = 0;
  return ncclSuccess;
}
FAKE ncclResult_t pncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                 ncclComm_t comm, cudaStream_t stream) {
  if (op != ncclSum) return ncclInvalidArgument;
  return submit({Kind::sum, comm->number, comm->rank, comm->size, -1, static_cast<const std::int64_t*>(send),
                 static_cast<std::int64_t*>(receive), count, comm->collectives++},
                type, stream);
}
FAKE ncclResult_t pncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                            cudaStream_t stream) {
  return submit({Kind::send, comm->number, comm->rank, comm->size, peer, static_cast<const std::int64_t*>(send),
                 nullptr, count, comm->sent[peer]++},
                type, stream);
}
FAKE ncclResult_t pncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                            cudaStream_t stream) {
  return submit({Kind::receive, comm->number, comm->rank, comm->size, peer, nullptr,
                 static_cast<std::int64_t*>(receive), count, comm->received[peer]++},
                type, stream);
}
FAKE ncclResult_t pncclGroupStart() {
  ++groupDepth;
  return ncclSuccess;
}
FAKE ncclResult_t pncclGroupEnd() {
  if (--groupDepth == 0) launchGrouped();
  return ncclSuccess;
}
FAKE_UNUSED(pncclBroadcast, const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)
FAKE_UNUSED(pncclReduce, const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t, cudaStream_t)
FAKE_UNUSED(pncclAllGather, const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t)
FAKE_UNUSED(pncclReduceScatter, const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t)
FAKE_UNUSED(pncclRedOpCreatePreMulSum, ncclRedOp_t*, void*, ncclDataType_t, ncclScalarResidence_t, ncclComm_t)
FAKE_UNUSED(pncclRedOpDestroy, ncclRedOp_t, ncclComm_t)
