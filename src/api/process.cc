#include "api/process.h"

#include <pthread.h>

#include <cstdlib>

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
  const std::lock_guard lock(mutex_);
  if (begun_) return;
  begun_ = true;
  // Here and not at load time: loading has no side effects. A child inherits the handler.
  static constinit std::atomic<bool> registered{false};
  if (!registered.exchange(true) && pthread_atfork(nullptr, nullptr, inChild) != 0)
    log::notice("fork() handlers could not be registered: do not use NCCL in forked children");
  if (log::on(log::Level::version)) log::write(log::Level::info, "NCCL version 2.32.3, provided by NCCL Falcon");
  watcher_ = findWatcher();
  if (watches())
    log::info("NCCL Falcon is active: it looks for slow ranks and links; NCCL_FALCON=0 turns it off");
  else if (!parameters::falcon.value())
    log::info("NCCL Falcon's detection is off; NCCL_FALCON=1 turns it on");
  if (parameters::threads.isSet())
    log::info("{}={} has no effect on the host engine", parameters::threads.name(), parameters::threads.value());
  if (const auto level = log::unknownLevel())
    log::notice("NCCL_DEBUG={} is no level: set it to VERSION, WARN, INFO or TRACE", *level);
  for (const std::string& name : unknownParameters())
    log::notice("{} is set, but NCCL Falcon knows no such parameter; see docs/environment.md", name);
}

void Process::findVendor() {
  if (searched_) return;
  searched_ = true;
  library_ = nullptr;
  const auto wish = static_cast<gpu::EngineWish>(parameters::engine.value());
  if (wish == gpu::EngineWish::host) {
    obstacle_ = "NCCL_FALCON_ENGINE=host";
    return;
  }
  driver_ = gpu::loadCudaDriver();
  const int devices = driver_ ? driver_->deviceCount() : 0;
  // Who asks for the vendor's engine gets it without a driver of ours to ask: the vendor's library judges for itself.
  if (wish == gpu::EngineWish::automatic && devices == 0) {
    obstacle_ = driver_ ? "the CUDA driver shows no device" : "there is no working CUDA driver (libcuda.so.1)";
    return;
  }
  const auto& library = loaded();
  if (library) {
    library_ = *library;
    return;
  }
  obstacle_ = library.error().message();
  log::warn("{} CUDA device(s), but the host engine is used: {}", devices, obstacle_);
}

const Result<std::shared_ptr<const gpu::VendorLibrary>>& Process::loaded() {
  if (!loaded_) {
    loaded_ = gpu::loadVendorLibrary(parameters::vendorLibrary.value(), watcher_.preload);
    if (*loaded_ && watches()) control::offerProfiler(FALCON_BUILD);
  }
  return *loaded_;
}

std::shared_ptr<const gpu::VendorLibrary> Process::likelyLibrary() {
  const std::lock_guard lock(mutex_);
  if (searched_ || library_) return library_;
  const auto wish = static_cast<gpu::EngineWish>(parameters::engine.value());
  if (wish == gpu::EngineWish::host) return nullptr;
  if (wish == gpu::EngineWish::automatic) {
    const auto counted = gpu::deviceCountIfInitialised();
    if (counted ? *counted == 0 : !gpu::devicesSeemPresent("", std::getenv("CUDA_VISIBLE_DEVICES"))) return nullptr;
  }
  if (const auto& library = loaded()) library_ = *library;
  return library_;
}

gpu::EngineOffer Process::offer() {
  const std::lock_guard lock(mutex_);
  findVendor();
  return {NCCL_VERSION_CODE, static_cast<gpu::EngineWish>(parameters::engine.value()), library_ != nullptr, obstacle_};
}

std::shared_ptr<const gpu::VendorLibrary> Process::deviceLibrary() {
  const std::lock_guard lock(mutex_);
  findVendor();
  return library_;
}

std::shared_ptr<const gpu::VendorLibrary> Process::vendorLibrary() {
  const std::lock_guard lock(mutex_);
  return library_;
}

std::shared_ptr<const gpu::CudaDriver> Process::driver() {
  const std::lock_guard lock(mutex_);
  if (!driver_) driver_ = gpu::cudaDriverIfLoaded();
  return driver_;
}

}  // namespace falcon::api
