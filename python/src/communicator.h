// A communicator of host memory: calls that are complete on return, and calls that go on beside Python.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "completion.h"
#include "library.h"

namespace falcon::python {

/// The library's words for what went wrong in a call.
class CallError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws CallError with the library's words where the call on this thread has failed.
void check(ncclResult_t result);

enum class Kind : int {
  allReduce,
  broadcast,
  reduce,
  allGather,
  reduceScatter,
  allToAll,
  gather,
  scatter,
  send,
  receive
};

/// One call. `reduction`: 0 to 4 as ncclRedOp_t; 5: a sum of what each rank first multiplies by `scalar`, an element of
/// the call's type; 6, 7, 8: bitwise and, or, xor.
struct Operation {
  Kind kind;
  std::uintptr_t send, receive;
  std::size_t count;
  int type;
  int reduction;
  int peer;
  std::string scalar{};
};

/// Thread-safe; no function needs the interpreter's lock. What takes longer than the timeout is ended with an error,
/// and the communicator with it.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  /// Blocks until all ranks are there. Throws CallError, also where that takes longer than `timeout`.
  static std::shared_ptr<Communicator> create(const std::string& id, int size, int rank, Milliseconds timeout);
  Communicator(ncclComm_t handle, Milliseconds timeout);
  ~Communicator();

  /// As one group where there are several; complete on return. Throws CallError.
  void run(std::span<const Operation> operations);
  /// The same beside the caller, in the order of these calls; memory must stay until the end. Throws CallError where
  /// something is wrong with the call itself.
  std::shared_ptr<Completion> queue(std::span<const Operation> operations);

  void setTimeout(Milliseconds timeout) { timeout_.store(timeout, std::memory_order_relaxed); }
  /// Ends what is under way, with that text; later calls fail with it. Others hear of it.
  void abort(const std::string& text);
  /// Frees it once no call of another thread is in it. Does not wait for what is queued, which is still carried out, or
  /// ends soon where there was an abort(): its memory must stay until the completions have ended.
  void close();
  /// Why it is of no use any more.
  std::optional<std::string> failure() const;
  bool busy() const { return unfinished_.load(std::memory_order_acquire) > 0; }
  /// What is wrong with a rank of it, though nothing of this one's waits for it.
  std::optional<std::string> trouble() const;
  /// For the functions of nccl_falcon.h; not freed while it is held. Throws CallError after abort() or close().
  std::shared_ptr<ncclComm> handle() const;
  /// This process's place in it, which changes where its members go by their roles. Throws CallError.
  int rank() const;

  /// Ends it where something has been under way for longer than the timeout.
  void endIfOverdue(std::chrono::steady_clock::time_point now);

 private:
  struct Underway;
  using Stream = std::remove_pointer_t<cudaStream_t>;
  ncclResult_t call(const Operation& operation, ncclComm_t comm, cudaStream_t stream);
  ncclResult_t callAll(std::span<const Operation> operations, ncclComm_t comm, cudaStream_t stream);
  ncclRedOp_t reductionOf(const Operation& operation, ncclComm_t comm, bool& ownOne);
  std::shared_ptr<Stream> stream();
  void begin();
  void finish();
  std::string explained(const std::string& text) const;

  mutable std::mutex mutex_;
  std::shared_ptr<std::atomic<bool>> isBroken_;  ///< then it is aborted where it is freed
  std::shared_ptr<ncclComm> handle_;
  std::weak_ptr<ncclComm> used_;  ///< also after close(), while calls are in it
  std::shared_ptr<Stream> stream_;
  /// The library takes the calls of a communicator one after the other, those of its stream included; and the stream's
  /// callback gets the errors of all before it, so that a call and its callback stay together.
  std::mutex calling_;
  std::optional<std::string> failure_;
  std::map<std::pair<int, int>, ncclRedOp_t> bitwise_;
  std::atomic<Milliseconds> timeout_;
  std::atomic<int> unfinished_{0};
  std::atomic<std::chrono::steady_clock::time_point> movedAt_;
};

}  // namespace falcon::python
