#include "profiler/plugin.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "base/contained.h"
#include "base/log.h"
#include "base/parameters.h"
#include "base/per_process.h"
#include "plugin/profiler/own_profiler.h"
#include "profiler/chained_name.h"
#include "profiler/log_outlet.h"

namespace falcon::profiler {
namespace {

/// Of Falcon's library in this process, which has loaded this one.
constinit std::atomic<GetWatchedOutlet> served{nullptr};

WatchedOutlet* watchedOutlet() {
  const GetWatchedOutlet get = served.load(std::memory_order_acquire);
  return get ? get() : nullptr;
}

/// Falcon's library is in this process, and on: it sees the calls before NCCL does.
bool isWatched() {
  return parameters::falcon.value() && dlsym(RTLD_DEFAULT, "ncclFalconIterationBegin") != nullptr;
}

std::uint32_t eventsOf(Depth depth) {
  switch (depth) {
    case Depth::nothing:
      return 0;
    case Depth::calls:
      return callEvents;
    case Depth::channels:
      break;
  }
  return callEvents | channelEvents;
}

bool records() {
  const int chosen = parameters::ownProfiler.value();
  if (chosen == ownProfilerOff || (chosen != ownProfilerOn && !parameters::falcon.value())) return false;
  if (!isWatched()) return true;
  log::info("Falcon's profiler plugin does not record: Falcon's library in this process does");
  return false;
}

class OwnPlugin final : public EventChoice {
 public:
  Observer& observer() { return observer_; }
  /// Said again with each communicator: of two that were made at the same time one is dropped.
  void begin() {
    if (watched_) watched_->ask(*this);
  }

  void want(Depth depth) noexcept override {
    contained([&] { observer_.want(eventsOf(depth)); }, [](const char*) {});
  }
  void refresh() noexcept override {
    if (chainedName_.empty()) return;
    contained([&] { observer_.refreshMask(); }, [](const char*) {});
  }

 private:
  Outlet* outlet() { return watched_ ? static_cast<Outlet*>(watched_) : on_ ? &log_ : nullptr; }

  WatchedOutlet* const watched_ = watchedOutlet();
  // Where nothing is recorded a chained plugin is told all the same, of what it asks for.
  const bool on_ = !watched_ && records();
  const std::string chainedName_ = chainedName();
  plugin::ProfilerDirectory chained_{parameters::chainedProfiler.name(), chainedName_};
  LogOutlet log_{[this](Depth depth) { want(depth); }, [this] { observer_.refreshMask(); }};
  Observer observer_{outlet(), chained_, on_ ? callEvents : 0};
};

constinit PerProcess<OwnPlugin> ofThisProcess;
constinit std::atomic<Observer*> current{nullptr};

}  // namespace

bool serveWatched(const char* build, GetWatchedOutlet get) {
  if (std::strcmp(build, FALCON_BUILD) != 0) return false;
  served.store(get, std::memory_order_release);
  return true;
}

Observer& processObserver() {
  OwnPlugin& plugin = ofThisProcess.get();
  plugin.begin();
  current.store(&plugin.observer(), std::memory_order_release);
  return plugin.observer();
}

Observer& currentObserver() {
  Observer* observer = current.load(std::memory_order_acquire);
  return observer ? *observer : processObserver();
}

}  // namespace falcon::profiler
