// A communicator of the GPU engine: the vendor's, which moves the data and judges what it is given.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/engine.h"
#include "gpu/launched_work.h"
#include "gpu/vendor_library.h"

namespace falcon::gpu {

/// A communicator's configuration with the texts it points to. Always blocking for the vendor: who wants a nonblocking
/// communicator gets its set-up in the background by the C ABI, for both engines alike.
struct VendorConfig {
  ncclConfig_t values = NCCL_CONFIG_INITIALIZER;
  std::string networkName;  ///< of netName, where that is set
  std::string name;         ///< of commName, where that is set
  /// The values with their texts pointing into this object.
  ncclConfig_t forVendor() const;
};

class VendorCommunicator final : public Engine {
 public:
  using Made = Result<std::unique_ptr<VendorCommunicator>>;

  /// Alike for a communicator and for all that are made of it.
  using Library = std::shared_ptr<const VendorLibrary>;
  /// One rank's place among those that make a communicator together.
  struct Place {
    int size = 0;
    Rank rank = -1;
    CommunicatorId id = 0;  ///< what Falcon calls the communicator
  };

  /// These are blocking, and collective over all that are to be members.
  /// @param ids  one at least; several (ncclCommInitRankScalable) share the work of the vendor's rendezvous
  static Made create(const Library& library, std::span<const ncclUniqueId> ids, const Place& place,
                     const VendorConfig& config);
  /// Joins one that grows, of which this rank was no member.
  static Made joinGrown(const Library& library, const ncclUniqueId& id, const Place& place, const VendorConfig& config);
  /// Collective over this communicator. `config` null: as this one. `name`: what Falcon calls the new one. A negative
  /// colour has no part, and gets null.
  Made split(int color, int key, const VendorConfig* config, CommunicatorId name);
  /// `excluded`: valid, in rising order, not this rank; they do not call. `despiteFailure`: running operations are
  /// stopped first, and a broken communicator will do.
  Made shrink(std::span<const Rank> excluded, bool despiteFailure, const VendorConfig* config, CommunicatorId name);
  /// `id` and `rank` as the application gave them: NCCL wants an id from one rank at least, and of all the rank -1.
  Made grow(int size, const ncclUniqueId* id, Rank rank, const VendorConfig* config, CommunicatorId name);
  Result<ncclUniqueId> uniqueIdToGrow();

  /// Falcon calls it otherwise. Before it is put to work.
  void nameIt(CommunicatorId name) { id_ = name; }
  /// `work` is told what is launched, as long as this lives. Before it is put to work.
  void tellOfLaunches(LaunchedWork& work) { work_ = &work; }

  ~VendorCommunicator() override;

  EngineKind kind() const override { return EngineKind::vendor; }
  CommunicatorId id() const override { return id_; }
  Rank rank() const override { return rank_; }
  int size() const override { return size_; }
  int device() const override { return device_; }
  std::uint64_t nextCollective() const override { return collectives_.load(std::memory_order_relaxed); }

  /// As one group of the vendor's, where there are several calls.
  Status run(std::span<const Submission> group) override;
  Status run(const Call& call) override;
  /// The vendor judges when it is called.
  Status check(std::span<const Submission>) override { return {}; }
  Result<double> estimate(std::span<const Submission> group) override;

  Status makeOp(DataType type, PreMultiplier& multiplier) override;
  Status destroyOp(const PreMultiplier& multiplier) override;

  Result<void*> registerBuffer(void* buffer, std::size_t size) override;
  Status deregisterBuffer(void* handle) override;
  Result<void*> registerWindow(void* buffer, std::size_t size, int flags) override;
  Status deregisterWindow(void* window) override;
  Result<void*> addressOf(void* window) override;

  Status revoke() override;
  Status finalize() override;
  Status abort() override;
  Status asyncError() const override;
  Status end() override;

  /// For calls that are only passed on. The handle is null after abort() and end().
  const VendorLibrary& library() const { return *library_; }
  ncclComm_t handle() const { return communicator_.load(); }
  /// What the vendor said of such a call.
  Status told(ncclResult_t result, const char* function, ncclComm_t communicator) const;
  /// Instead, where there is no handle (invalidUsage).
  static Status wasAborted(const char* function);
  /// One that was passed on has been taken. Of one thread at a time, as NCCL wants it: no locked instruction.
  void count(Operation operation) {
    if (isPointToPoint(operation)) return;
    collectives_.store(collectives_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  /// Around one call: tells of what it launches, where somebody wants to know.
  class Launch {
   public:
    Launch(const VendorCommunicator& communicator, void* stream)
        : work_(communicator.launchesToldTo()), stream_(stream) {
      if (work_) work_->times().before(launch_, stream, communicator.id_);
    }
    void made() {
      if (!work_) return;
      if (!launch_.streams.empty()) work_->times().behind(launch_, SystemClock::instance().now());
      work_->note(stream_);
    }

   private:
    LaunchedWork* const work_;
    void* const stream_;
    TimedLaunch launch_;
  };

 private:
  VendorCommunicator(Library library, const Place& place, ncclComm_t communicator);
  /// What is made of this one: rank and size are the vendor's to say.
  Made childOf(ncclComm_t child, CommunicatorId name) const;

  /// `settings`: an ncclCollConfig_t, or null.
  Status submit(const Call& call, cudaStream_t stream, const void* settings = nullptr);
  Result<ncclResult_t> submitPlain(const Call& call, ncclComm_t communicator, cudaStream_t stream) const;
  Result<ncclResult_t> submitWith(const Call& call, ncclComm_t communicator, cudaStream_t stream,
                                  const ncclCollConfig_t* settings) const;
  Status submitAll(std::span<const Submission> group) const;
  /// Null: nobody wants to know, or it is alone, so that nobody waits.
  LaunchedWork* launchesToldTo() const { return size_ > 1 ? work_ : nullptr; }
  static TimedLaunch aboutToLaunch(std::span<const Submission> group);
  static void noteLaunches(std::span<const Submission> group, TimedLaunch& launch);
  /// The vendor's communicator. Errors (invalidUsage): it is gone, or the library lacks the function.
  Result<ncclComm_t> forCall(const char* function, bool exists) const;
  /// `call` with the vendor's communicator, and what it says as a status.
  template <class Work>
  Status ask(const char* function, bool exists, Work&& call) const {
    const auto communicator = forCall(function, exists);
    return communicator ? told(call(*communicator), function, *communicator) : communicator.error();
  }
  const VendorFunctions& functions() const { return library_->functions; }

  const Library library_;
  LaunchedWork* work_ = nullptr;  // null: nobody wants to know
  CommunicatorId id_;
  Rank rank_;
  int size_;
  int device_ = 0;
  std::atomic<ncclComm_t> communicator_;  // null after abort() and end(): the vendor has freed it
  std::atomic<std::uint64_t> collectives_{0};
};

}  // namespace falcon::gpu
