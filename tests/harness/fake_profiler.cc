// A profiler plugin for tests, of the version FAKE_PROFILER_VERSION: it writes down what it is told.
// Read when it is loaded: FALCON_FAKE_PLUGIN_FAULT makes it unsound in one way (see faults below);
// FALCON_FAKE_PROFILER_MASK is the mask that it sets, else all that its version knows.
#include "harness/fake_profiler.h"

#include <cstdlib>
#include <deque>
#include <string_view>

#include "plugin/profiler/older_events.h"
#include "plugin/profiler/profiler_v4.h"

namespace {

using namespace falcon::plugin;
using falcon::test::FakeProfilerLog;

constexpr ResultCode systemError = 2;

FakeProfilerLog events;
std::string fault;
int wantedMask = 0;
int started = 0;  // with the log's mutex
int context = 0;

struct Handle {
  int number;
};
std::deque<Handle> handles;  // with the log's mutex

void note(std::string line) {
  events.lines.push_back(std::move(line));
}

ResultCode begin(void** itsContext, int* mask, const char* name) {
  {
    const std::lock_guard lock(events.mutex);
    events.name = name ? name : "null";
  }
  ++events.inits;
  if (fault == "init") return systemError;
  *itsContext = &context;
  *mask = wantedMask;
  return success;
}

#if FAKE_PROFILER_VERSION == 4
using OwnEvent = EventV4;
using Own = ProfilerV4;
constexpr std::uint32_t known = eventsOfV4;
ResultCode init(void** itsContext, int* mask, const char* name, std::uint64_t, int, int, int, Logger) {
  return begin(itsContext, mask, name);
}
#else
#if FAKE_PROFILER_VERSION == 5
using OwnEvent = EventV5;
constexpr std::uint32_t known = eventsOfV5;
#elif FAKE_PROFILER_VERSION == 6
using OwnEvent = EventV6;
constexpr std::uint32_t known = eventsOfV6;
#else
using OwnEvent = EventV7;
constexpr std::uint32_t known = eventsOfV7;
#endif
using Own = ProfilerFrom5<OwnEvent>;
ResultCode init(void** itsContext, std::uint64_t, int* mask, const char* name, int, int, int, Logger) {
  return begin(itsContext, mask, name);
}
#endif

ResultCode startEvent(void*, void** handle, OwnEvent* event) {
  if (fault == "start") return systemError;
  const Event newest = newestEvent(*event);
  const std::lock_guard lock(events.mutex);
  const auto* parent = static_cast<const Handle*>(event->parent);
  auto* own = &handles.emplace_back(Handle{++started});
  note(falcon::test::startLine(newest, own->number, parent ? parent->number : 0));
  ++events.open;
  *handle = own;
  return success;
}

ResultCode stopEvent(void* handle) {
  const std::lock_guard lock(events.mutex);
  // Handles stay, as parents of what follows.
  note("stop " + std::to_string(static_cast<Handle*>(handle)->number));
  --events.open;
  return success;
}

ResultCode recordEventState(void* handle, EventState state, StateArguments*) {
  const std::lock_guard lock(events.mutex);
  note("state " + std::to_string(static_cast<Handle*>(handle)->number) + " " + std::to_string(static_cast<int>(state)));
  return success;
}

ResultCode finalize(void*) {
  ++events.finalizes;
  return success;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] FakeProfilerLog* fakeProfilerLog() {
  return &events;
}

#define NAME_OF(version) ncclProfiler_v##version
#define EXPORTED(version) NAME_OF(version)
extern "C" {
[[gnu::visibility("default")]] Own EXPORTED(FAKE_PROFILER_VERSION){"Fake",           init,    startEvent, stopEvent,
                                                                   recordEventState, finalize};
}

namespace {

/// After all that it sets has been made.
const bool configured = [] {
  const char* word = std::getenv("FALCON_FAKE_PLUGIN_FAULT");
  fault = word ? word : "";
  const char* mask = std::getenv("FALCON_FAKE_PROFILER_MASK");
  wantedMask = mask ? std::atoi(mask) : static_cast<int>(known);
  if (fault == "lacks-members") EXPORTED(FAKE_PROFILER_VERSION).stopEvent = nullptr;
  if (fault == "no-name") EXPORTED(FAKE_PROFILER_VERSION).name = nullptr;
  return true;
}();

}  // namespace
