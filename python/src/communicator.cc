#include "communicator.h"

#include <condition_variable>
#include <cstring>
#include <thread>

#include "watchdog.h"

namespace falcon::python {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// What a thread that makes a communicator, and may be stuck in that, shares with who waits for it.
struct Making {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false, abandoned = false;
  ncclComm_t made = nullptr;
  std::string error;
};

void make(const std::shared_ptr<Making>& making, const ncclUniqueId& id, int size, int rank) {
  ncclComm_t made = nullptr;
  const ncclResult_t result = library().ncclCommInitRank(&made, size, id, rank);
  std::unique_lock lock(making->mutex);
  if (result != ncclSuccess) making->error = textOf(result);
  if (making->abandoned) {
    lock.unlock();
    if (made) library().ncclCommAbort(made);
    return;
  }
  making->made = made;
  making->done = true;
  making->changed.notify_all();
}

}  // namespace

/// Between the queueing of calls and the callback that tells of their end.
struct Communicator::Underway {
  std::shared_ptr<Communicator> communicator;
  std::shared_ptr<Completion> completion;
  static void end(ncclResult_t result, void* context) {
    const std::unique_ptr<Underway> underway(static_cast<Underway*>(context));
    std::optional<std::string> error;
    if (result != ncclSuccess) error = underway->communicator->explained(textOf(result));
    underway->communicator->finish();
    underway->completion->end(std::move(error));
  }
};

std::shared_ptr<Communicator> Communicator::create(const std::string& id, int size, int rank, Milliseconds timeout) {
  ncclUniqueId unique{};
  if (id.size() != sizeof unique.internal)
    throw CallError("the unique id has " + std::to_string(id.size()) + " bytes, not " +
                    std::to_string(sizeof unique.internal));
  std::memcpy(unique.internal, id.data(), id.size());
  const auto making = std::make_shared<Making>();
  std::thread([=] { make(making, unique, size, rank); }).detach();
  std::unique_lock lock(making->mutex);
  if (!making->changed.wait_for(lock, timeout, [&] { return making->done; })) {
    making->abandoned = true;
    throw CallError("rank " + std::to_string(rank) + " waited for " + std::to_string(timeout.count()) + " ms for all " +
                    std::to_string(size) + " ranks of the group to come");
  }
  if (!making->made) throw CallError(making->error);
  auto communicator = std::make_shared<Communicator>(making->made, timeout);
  Watchdog::instance().watch(communicator);
  return communicator;
}

void check(ncclResult_t result) {
  if (result != ncclSuccess) throw CallError(textOf(result));
}

int Communicator::rank() const {
  int rank = 0;
  check(library().ncclCommUserRank(handle().get(), &rank));
  return rank;
}

Communicator::Communicator(ncclComm_t handle, Milliseconds timeout)
    : isBroken_(std::make_shared<std::atomic<bool>>(false)),
      handle_(handle,
              [isBroken = isBroken_](ncclComm_t comm) {
                if (*isBroken)
                  library().ncclCommAbort(comm);
                else
                  library().ncclCommDestroy(comm);
              }),
      used_(handle_),
      timeout_(timeout),
      movedAt_(SteadyClock::now()) {}

Communicator::~Communicator() {
  close();
}

void Communicator::begin() {
  if (unfinished_.fetch_add(1, std::memory_order_acq_rel) == 0)
    movedAt_.store(SteadyClock::now(), std::memory_order_relaxed);
}

void Communicator::finish() {
  movedAt_.store(SteadyClock::now(), std::memory_order_relaxed);
  unfinished_.fetch_sub(1, std::memory_order_release);
}

std::shared_ptr<ncclComm> Communicator::handle() const {
  const std::lock_guard lock(mutex_);
  if (failure_) throw CallError(*failure_);
  if (!handle_) throw CallError("the process group was destroyed");
  return handle_;
}

std::optional<std::string> Communicator::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<std::string> Communicator::trouble() const {
  std::shared_ptr<ncclComm> comm;
  {
    const std::lock_guard lock(mutex_);
    if (failure_ || !handle_) return failure_;
    comm = handle_;
  }
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = library().ncclCommGetAsyncError(comm.get(), &state);
  if (asked != ncclSuccess || state == ncclSuccess || state == ncclInProgress) return {};
  return textOf(state);
}

std::string Communicator::explained(const std::string& text) const {
  const auto why = failure();
  return why ? *why : text;
}

std::shared_ptr<Communicator::Stream> Communicator::stream() {
  const std::lock_guard lock(mutex_);
  if (stream_) return stream_;
  cudaStream_t made = nullptr;
  if (const ncclResult_t result = library().ncclFalconStreamCreate(&made); result != ncclSuccess)
    throw CallError(textOf(result));
  stream_ = std::shared_ptr<Stream>(made, [](cudaStream_t each) { library().ncclFalconStreamDestroy(each); });
  return stream_;
}

ncclRedOp_t Communicator::reductionOf(const Operation& operation, ncclComm_t comm, bool& ownOne) {
  if (operation.reduction < 5) return static_cast<ncclRedOp_t>(operation.reduction);
  ncclRedOp_t made = ncclSum;
  const auto type = static_cast<ncclDataType_t>(operation.type);
  if (operation.reduction == 5) {
    std::string scalar = operation.scalar;
    scalar.resize(std::max<std::size_t>(scalar.size(), 8));
    const ncclResult_t result =
        library().ncclRedOpCreatePreMulSum(&made, scalar.data(), type, ncclScalarHostImmediate, comm);
    if (result != ncclSuccess) throw CallError(textOf(result));
    ownOne = true;
    return made;
  }
  const std::lock_guard lock(mutex_);
  const auto [place, isNew] = bitwise_.try_emplace({operation.reduction, operation.type}, ncclSum);
  if (!isNew) return place->second;
  const auto which = static_cast<ncclFalconBitwise_t>(operation.reduction - 6);
  const ncclResult_t result = library().ncclFalconRedOpCreateBitwise(&place->second, which, type, comm);
  if (result == ncclSuccess) return place->second;
  bitwise_.erase(place);
  throw CallError(textOf(result));
}

ncclResult_t Communicator::call(const Operation& one, ncclComm_t comm, cudaStream_t stream) {
  const Library& nccl = library();
  const void* const send = reinterpret_cast<const void*>(one.send);
  void* const receive = reinterpret_cast<void*>(one.receive);
  const auto type = static_cast<ncclDataType_t>(one.type);
  const auto reduced = [&](auto&& make) {
    bool ownOne = false;
    const ncclRedOp_t op = reductionOf(one, comm, ownOne);
    const ncclResult_t result = make(op);
    if (ownOne) nccl.ncclRedOpDestroy(op, comm);
    return result;
  };
  switch (one.kind) {
    case Kind::allReduce:
      return reduced(
          [&](ncclRedOp_t op) { return nccl.ncclAllReduce(send, receive, one.count, type, op, comm, stream); });
    case Kind::broadcast:
      return nccl.ncclBroadcast(send, receive, one.count, type, one.peer, comm, stream);
    case Kind::reduce:
      return reduced(
          [&](ncclRedOp_t op) { return nccl.ncclReduce(send, receive, one.count, type, op, one.peer, comm, stream); });
    case Kind::allGather:
      return nccl.ncclAllGather(send, receive, one.count, type, comm, stream);
    case Kind::reduceScatter:
      return reduced(
          [&](ncclRedOp_t op) { return nccl.ncclReduceScatter(send, receive, one.count, type, op, comm, stream); });
    case Kind::allToAll:
      return nccl.ncclAlltoAll(send, receive, one.count, type, comm, stream);
    case Kind::gather:
      return nccl.ncclGather(send, receive, one.count, type, one.peer, comm, stream);
    case Kind::scatter:
      return nccl.ncclScatter(send, receive, one.count, type, one.peer, comm, stream);
    case Kind::send:
      return nccl.ncclSend(send, one.count, type, one.peer, comm, stream);
    case Kind::receive:
      return nccl.ncclRecv(receive, one.count, type, one.peer, comm, stream);
  }
  throw CallError("no such call: " + std::to_string(static_cast<int>(one.kind)));
}

ncclResult_t Communicator::callAll(std::span<const Operation> operations, ncclComm_t comm, cudaStream_t stream) {
  if (operations.size() == 1) return call(operations[0], comm, stream);
  library().ncclGroupStart();
  // Of a group one call of which is refused nothing runs: the end says what was wrong.
  try {
    for (const Operation& operation : operations)
      if (call(operation, comm, stream) != ncclSuccess) break;
  } catch (...) {
    library().ncclGroupEnd();
    throw;
  }
  return library().ncclGroupEnd();
}

void Communicator::run(std::span<const Operation> operations) {
  const std::shared_ptr<ncclComm> comm = handle();
  if (operations.empty()) return;
  const std::lock_guard calling(calling_);
  begin();
  const struct Ended {
    Communicator& self;
    ~Ended() { self.finish(); }
  } ended{*this};
  if (const ncclResult_t result = callAll(operations, comm.get(), nullptr); result != ncclSuccess)
    throw CallError(explained(textOf(result)));
}

std::shared_ptr<Completion> Communicator::queue(std::span<const Operation> operations) {
  const std::shared_ptr<ncclComm> comm = handle();
  auto completion = std::make_shared<Completion>();
  if (operations.empty()) {
    completion->end({});
    return completion;
  }
  const std::shared_ptr<Stream> queued = stream();
  std::unique_ptr<Underway> underway(new Underway{shared_from_this(), completion});
  const std::lock_guard calling(calling_);
  begin();
  ncclResult_t result = ncclSuccess;
  try {
    result = callAll(operations, comm.get(), queued.get());
  } catch (...) {
    finish();
    throw;
  }
  // Also where the call was refused: nothing of it is in the stream, and the callback would tell no error of it.
  if (result == ncclSuccess) result = library().ncclFalconStreamCallback(queued.get(), Underway::end, underway.get());
  if (result != ncclSuccess) {
    const std::string text = textOf(result);
    finish();
    throw CallError(explained(text));
  }
  static_cast<void>(underway.release());
  return completion;
}

void Communicator::abort(const std::string& text) {
  std::shared_ptr<ncclComm> comm;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = text;
    *isBroken_ = true;
    comm = used_.lock();
  }
  if (comm) library().ncclCommRevoke(comm.get(), NCCL_REVOKE_DEFAULT);
}

void Communicator::close() {
  // The stream first; both without the lock, which the library's callbacks want.
  std::shared_ptr<ncclComm> comm;
  std::shared_ptr<Stream> stream;
  const std::lock_guard lock(mutex_);
  comm = std::exchange(handle_, nullptr);
  stream = std::exchange(stream_, nullptr);
}

void Communicator::endIfOverdue(SteadyClock::time_point now) {
  if (!busy()) return;
  const Milliseconds timeout = timeout_.load(std::memory_order_relaxed);
  if (now - movedAt_.load(std::memory_order_relaxed) < timeout || !busy() || failure()) return;
  abort("nothing of the process group's operations ended for " + std::to_string(timeout.count()) +
        " ms, its timeout (falcon status --hang names who is waited for)");
}

}  // namespace falcon::python
