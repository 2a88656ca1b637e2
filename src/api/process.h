// What the process has once: drivers and libraries found at run time, notices said once, safety across fork.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "api/exports.h"
#include "api/watcher.h"
#include "base/result.h"
#include "gpu/cuda_driver.h"
#include "gpu/engine_choice.h"
#include "gpu/vendor_library.h"

namespace falcon::api {

/// Thread-safe. Made by the first call that starts or joins something; a forked child makes its own.
class Process {
 public:
  static Process& instance();
  /// Which process this is in a line of forks: communicators of another generation are the parent's.
  static int generation() { return currentGeneration.load(std::memory_order_relaxed); }

  static void childBegins();

  /// What this process can offer for a communicator; loads driver and vendor library at the first need.
  gpu::EngineOffer offer();
  /// The vendor's library where this process works on devices; looks for it at the first need. Null elsewhere.
  std::shared_ptr<const gpu::VendorLibrary> deviceLibrary();
  /// The same for what comes before communicators are made: CUDA is not initialised for it, so that the process may
  /// still fork workers that use it. Null also where a GPU does not show without that.
  std::shared_ptr<const gpu::VendorLibrary> likelyLibrary();
  /// What one of these has found, but nobody looks for it.
  std::shared_ptr<const gpu::VendorLibrary> vendorLibrary();
  /// Whether Falcon watches the communicators that are made here.
  bool watches() const { return watcher_.isThisLibrary; }
  /// Null where the process has no CUDA driver loaded: then there are no device pointers either.
  std::shared_ptr<const gpu::CudaDriver> driver();

 private:
  /// What is said and registered once.
  void begin();
  void findVendor();
  const Result<std::shared_ptr<const gpu::VendorLibrary>>& loaded();

  static std::atomic<int> currentGeneration;

  // Not held while the loader is asked: a library's constructor that calls us has its lock. Where two threads look for
  // something at the same time what the first one finds stays.
  std::mutex mutex_;
  std::atomic<bool> begun_ = false;
  Watcher watcher_;  ///< found when it begins, and the same from then on
  bool searched_ = false;
  std::string obstacle_;
  std::optional<Result<std::shared_ptr<const gpu::VendorLibrary>>> loaded_;  ///< in use or not
  std::shared_ptr<const gpu::VendorLibrary> library_;
  std::shared_ptr<const gpu::CudaDriver> driver_;
};

}  // namespace falcon::api
