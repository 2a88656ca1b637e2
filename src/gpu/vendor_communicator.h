// A communicator of the GPU engine: the vendor's communicator, and a host one beside it for host pointers.
#pragma once

#include <atomic>
#include <memory>

#include "base/engine.h"
#include "collectives/host_communicator.h"
#include "gpu/cuda_driver.h"
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
  /// Blocking; collective over the host communicator's members. `driver` may be null: then all pointers are the
  /// vendor's. `work` is told what is launched, by this and by what is split from it; null: nobody wants to know.
  static Result<std::unique_ptr<VendorCommunicator>> create(std::shared_ptr<const VendorLibrary> library,
                                                            std::shared_ptr<const CudaDriver> driver,
                                                            std::unique_ptr<collectives::HostCommunicator> host,
                                                            const VendorConfig& config, Nanoseconds limit,
                                                            LaunchedWork* work = nullptr);
  ~VendorCommunicator() override;

  EngineKind kind() const override { return EngineKind::vendor; }
  CommunicatorId id() const override { return host_->id(); }
  Rank rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  int device() const override { return device_; }

  Result<std::unique_ptr<Engine>> split(int color, int key) override;
  Result<std::unique_ptr<Engine>> shrink(std::span<const Rank> excluded, bool despiteFailure) override;
  Status revoke() override;
  Status finalize() override;
  void abort() override;
  Status asyncError() const override;
  std::uint64_t nextCollective() const override { return collectives_ + host_->nextCollective(); }

  /// A PreMulSum op of the vendor's: its number, for PreMultiplier::vendorOp. `scalar` as nccl.h has it.
  Result<int> createPreMulSum(void* scalar, DataType type, ncclScalarResidence_t residence);
  Status destroyOp(int op);

  /// Registrations with the vendor; the results are its handles.
  Result<void*> registerBuffer(void* buffer, size_t size);
  Status deregisterBuffer(void* handle);
  Result<ncclWindow_t> registerWindow(void* buffer, size_t size, int flags);
  Status deregisterWindow(ncclWindow_t window);

  collectives::HostCommunicator& host() { return *host_; }
  /// For calls that are only passed on. The handle is null after abort().
  const VendorLibrary& library() const { return *library_; }
  ncclComm_t handle() const { return communicator_.load(); }
  /// Ordinary host memory with stream NULL is the host engine's; everything else the vendor's.
  bool isForHost(const Call& call, const void* stream) const;

 private:
  friend Status runVendorGroup(std::span<const Submission> submissions);
  friend Result<float> simulateVendorGroup(std::span<const Submission> submissions);

  VendorCommunicator(std::shared_ptr<const VendorLibrary> library, std::shared_ptr<const CudaDriver> driver,
                     std::unique_ptr<collectives::HostCommunicator> host, VendorConfig config, ncclComm_t communicator,
                     LaunchedWork* work);
  /// `settings`: an ncclCollConfig_t, or null.
  Status submit(const Call& call, cudaStream_t stream, const void* settings = nullptr);
  Result<ncclResult_t> submitPlain(const Call& call, ncclComm_t communicator, cudaStream_t stream) const;
  Result<ncclResult_t> submitWith(const Call& call, ncclComm_t communicator, cudaStream_t stream,
                                  const ncclCollConfig_t* settings) const;
  /// The vendor's communicator. Errors (invalidUsage): it was aborted, or the library lacks the function.
  Result<ncclComm_t> forCall(const char* function, bool exists) const;
  Status told(ncclResult_t result, const char* function, ncclComm_t communicator) const;

  std::shared_ptr<const VendorLibrary> library_;
  std::shared_ptr<const CudaDriver> driver_;
  std::unique_ptr<collectives::HostCommunicator> host_;
  VendorConfig config_;
  LaunchedWork* const work_;
  std::atomic<ncclComm_t> communicator_;  // null after abort(): the vendor has freed it
  int device_ = 0;
  std::uint64_t collectives_ = 0;
};

/// Hands calls to the vendor, as one vendor group where there are several; all engines are VendorCommunicators of one
/// library. Returns when the vendor does: the work goes on on its streams.
Status runVendorGroup(std::span<const Submission> submissions);
/// The vendor's estimate of the time that the group would take, in its unit. Nothing runs.
Result<float> simulateVendorGroup(std::span<const Submission> submissions);

}  // namespace falcon::gpu
