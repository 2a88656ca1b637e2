#include "profiler/plugin.h"

#include <dlfcn.h>

#include "base/log.h"
#include "base/parameters.h"
#include "base/per_process.h"
#include "profiler/log_outlet.h"

namespace falcon::profiler {
namespace {

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
  constexpr int off = 1, on = 2;
  const int chosen = parameters::ownProfiler.value();
  if (chosen == off || (chosen != on && !parameters::falcon.value())) return false;
  if (!isWatched()) return true;
  log::info("Falcon's profiler plugin does not record: Falcon's library in this process does");
  return false;
}

class OwnPlugin {
 public:
  Observer& observer() { return observer_; }

 private:
  // Where nothing is recorded a chained plugin is told all the same, of what it asks for.
  const bool on_ = records();
  plugin::ProfilerDirectory chained_{parameters::chainedProfiler.name(), parameters::chainedProfiler.value()};
  LogOutlet outlet_{[this](Depth depth) { observer_.want(eventsOf(depth)); }, [this] { observer_.refreshMask(); }};
  Observer observer_{on_ ? &outlet_ : nullptr, chained_, on_ ? callEvents : 0};
};

constinit PerProcess<OwnPlugin> ofThisProcess;
constinit std::atomic<Observer*> current{nullptr};

}  // namespace

Observer& processObserver() {
  Observer& observer = ofThisProcess.get().observer();
  current.store(&observer, std::memory_order_release);
  return observer;
}

Observer& currentObserver() {
  Observer* observer = current.load(std::memory_order_acquire);
  return observer ? *observer : processObserver();
}

}  // namespace falcon::profiler
