#include "plugin/profiler/profiler_directory.h"

#include <unistd.h>

#include "base/log.h"
#include "base/parameters.h"
#include "base/per_process.h"
#include "plugin/result_text.h"

namespace falcon::plugin {
namespace {

constinit PerProcess<ProfilerDirectory> ofThisProcess;

}  // namespace

int ProfilerSession::ownProcess() {
  return getpid();
}

ProfilerSession::~ProfilerSession() {
  // A forked child's plugin is its parent's as it was at that moment: it is not called.
  if (getpid() != process_) return;
  if (const ResultCode result = calls_.finalize(context_); result != success)
    log::notice("profiler plugin {}: finalize returned {}", calls_.name(), resultText(result));
}

void* ProfilerSession::start(const Event& event) const {
  if ((event.type & calls_.knownEvents()) == 0) return nullptr;
  void* handle = nullptr;
  return calls_.start(context_, &handle, event) == success ? handle : nullptr;
}

ProfilerDirectory& processProfiler() {
  return ofThisProcess.get();
}

ProfilerDirectory::ProfilerDirectory()
    : ProfilerDirectory(parameters::profilerPlugin.name(), parameters::profilerPlugin.value()) {}

std::shared_ptr<const ProfilerSession> ProfilerDirectory::open(const ProfiledCommunicator& communicator) {
  const std::lock_guard lock(mutex_);
  const ProfilerCalls* calls = plugin_.get(profilerVersions);
  if (!calls) return nullptr;
  void* context = nullptr;
  if (const ResultCode result = calls->init(communicator, &context, &mask_); result != success) {
    std::atomic_ref(mask_).store(0, std::memory_order_relaxed);
    plugin_.decline("init returned " + resultText(result));
    return nullptr;
  }
  return std::make_shared<const ProfilerSession>(*calls, context, communicator, mask_);
}

}  // namespace falcon::plugin
