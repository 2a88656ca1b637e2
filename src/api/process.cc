#include "api/process.h"

#include <pthread.h>

#include <cstdlib>
#include <utility>

#include "base/log.h"
#include "base/parameters.h"
#include "base/per_process.h"
#include "control/ranges.h"
#include "control/vendor_events.h"
#include "control/vendors_profiler.h"
#include "gpu/device_presence.h"

namespace falcon::api {

std::atomic<int> Process::currentGeneration{0};

namespace {

constinit PerProcess<Process> ofThisProcess;

void inChild() {
  Process::childBegins();
  control::Ranges::childBegins();
  control::VendorEvents::childBegins();
  log::reset();
}

}  // namespace

Process& Process::instance() {
  Process& process = ofThisProcess.get();
  process.begin();
  return process;
}

void Process::childBegins() {
  currentGeneration.fetch_add(1, std::memory_order_relaxed);
}

void Process::begin() {
  if (begun_.load(std::memory_order_acquire)) return;
  // In the caller's thread, not in one of ours: that may wait for the loader while the caller, in a library's
  // constructor, waits for it.
  const Watcher found = findWatcher();
  const std::lock_guard lock(mutex_);
  if (begun_.load(std::memory_order_relaxed)) return;
  watcher_ = found;
  // Here and not at load time: loading has no side effects. A child inherits the handler.
  static constinit std::atomic<bool> registered{false};
  if (!registered.exchange(true) && pthread_atfork(nullptr, nullptr, inChild) != 0)
    log::notice("fork() handlers could not be registered: do not use NCCL in forked children");
  if (log::on(log::Level::version)) log::write(log::Level::info, "NCCL version 2.32.3, provided by NCCL Falcon");
  say(watcher_);
  if (parameters::threads.isSet())
    log::info("{}={} has no effect on the host engine", parameters::threads.name(), parameters::threads.value());
  if (const auto level = log::unknownLevel())
    log::notice("NCCL_DEBUG={} is no level: set it to VERSION, WARN, INFO or TRACE", *level);
  for (const std::string& name : unknownParameters())
    log::notice("{} is set, but NCCL Falcon knows no such parameter; see docs/environment.md", name);
  begun_.store(true, std::memory_order_release);
}

void Process::findVendor() {
  {
    const std::lock_guard lock(mutex_);
    if (searched_) return;
  }
  const auto wish = static_cast<gpu::EngineWish>(parameters::engine.value());
  std::shared_ptr<const gpu::VendorLibrary> library;
  std::shared_ptr<const gpu::CudaDriver> driver;
  std::string obstacle;
  int devices = 0;
  if (wish == gpu::EngineWish::host) {
    obstacle = "NCCL_FALCON_ENGINE=host";
  } else {
    driver = gpu::loadCudaDriver();
    devices = driver ? driver->deviceCount() : 0;
    // Who asks for the vendor's engine gets it without a driver of ours to ask: the vendor's library judges for itself.
    if (wish == gpu::EngineWish::automatic && devices == 0) {
      obstacle = driver ? "the CUDA driver shows no device" : "there is no working CUDA driver (libcuda.so.1)";
    } else if (const auto& found = loaded()) {
      library = *found;
    } else {
      obstacle = found.error().message();
    }
  }
  const std::lock_guard lock(mutex_);
  if (std::exchange(searched_, true)) return;
  library_ = std::move(library);
  if (wish != gpu::EngineWish::host) driver_ = std::move(driver);
  obstacle_ = std::move(obstacle);
  if (!library_ && (devices > 0 || wish == gpu::EngineWish::vendor))
    log::warn("{} CUDA device(s), but the host engine is used: {}", devices, obstacle_);
}

const Result<std::shared_ptr<const gpu::VendorLibrary>>& Process::loaded() {
  {
    const std::lock_guard lock(mutex_);
    if (loaded_) return *loaded_;
  }
  auto found = gpu::loadVendorLibrary(parameters::vendorLibrary.value(), watcher_.preload);
  if (found && watches()) control::offerProfiler(FALCON_BUILD);  // before anybody goes on to that library
  const std::lock_guard lock(mutex_);
  if (!loaded_) loaded_ = std::move(found);
  return *loaded_;
}

std::shared_ptr<const gpu::VendorLibrary> Process::likelyLibrary() {
  {
    const std::lock_guard lock(mutex_);
    if (searched_ || library_) return library_;
  }
  const auto wish = static_cast<gpu::EngineWish>(parameters::engine.value());
  if (wish == gpu::EngineWish::host) return nullptr;
  if (wish == gpu::EngineWish::automatic) {
    const auto counted = gpu::deviceCountIfInitialised();
    if (counted ? *counted == 0 : !gpu::devicesSeemPresent("", std::getenv("CUDA_VISIBLE_DEVICES"))) return nullptr;
  }
  const auto& library = loaded();
  const std::lock_guard lock(mutex_);
  if (library && !searched_) library_ = *library;
  return library_;
}

gpu::EngineOffer Process::offer() {
  findVendor();
  const std::lock_guard lock(mutex_);
  return {NCCL_VERSION_CODE, static_cast<gpu::EngineWish>(parameters::engine.value()), library_ != nullptr, obstacle_};
}

std::shared_ptr<const gpu::VendorLibrary> Process::deviceLibrary() {
  findVendor();
  return vendorLibrary();
}

std::shared_ptr<const gpu::VendorLibrary> Process::vendorLibrary() {
  const std::lock_guard lock(mutex_);
  return library_;
}

std::shared_ptr<const gpu::CudaDriver> Process::driver() {
  {
    const std::lock_guard lock(mutex_);
    if (driver_) return driver_;
  }
  auto found = gpu::cudaDriverIfLoaded();
  const std::lock_guard lock(mutex_);
  if (!driver_) driver_ = std::move(found);
  return driver_;
}

}  // namespace falcon::api
