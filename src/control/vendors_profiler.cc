#include "control/vendors_profiler.h"

#include <dlfcn.h>

#include <atomic>
#include <string>

#include "base/log.h"
#include "base/own_files.h"
#include "base/parameters.h"
#include "control/vendor_events.h"
#include "plugin/plugin_names.h"
#include "plugin/profiler/own_profiler.h"

namespace falcon::control {
namespace {

/// The one that NCCL loads where it is told of none.
constexpr const char* defaultProfiler = "libnccl-profiler.so";

void sayPlaceIsTaken(const std::string& by) {
  log::info(
      "{} has the vendor's one place for a profiler, so Falcon does not see its channels and proxies: "
      "NCCL_PROFILER_PLUGIN=falcon with {}={} and the folder of {} in LD_LIBRARY_PATH has both",
      by, parameters::chainedProfiler.name(), by, profiler::ownProfilerFile);
}

profiler::WatchedOutlet* outletOfThisProcess() noexcept {
  try {
    return &VendorEvents::ofProcess();
  } catch (...) {  // there is no memory for it: then nothing is observed
    return nullptr;
  }
}

/// False: it cannot be loaded, or is of another build.
bool loadOurs(const char* build) {
  const auto file = ownLibrary(profiler::ownProfilerFile);
  void* const library = file ? dlopen(file->c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;  // stays, as plugins do
  const auto serve =
      library ? reinterpret_cast<profiler::ServeWatched>(dlsym(library, profiler::serveWatchedName)) : nullptr;
  const bool served = serve && serve(build, outletOfThisProcess);
  dlerror();  // what was said of it is not for the application
  return served;
}

}  // namespace

void offerProfiler(const char* build) {
  static constinit std::atomic_flag offered;  // by either shape of this library; a forked child has it as well
  if (parameters::ownProfiler.value() == profiler::ownProfilerOff || offered.test_and_set()) return;
  const std::string named = parameters::profilerPlugin.value();
  const bool isOurs = profiler::isOwnProfiler(named);
  if (!named.empty() && !isOurs) {
    if (!plugin::sameWithoutCase(named, "none")) sayPlaceIsTaken(named);
    return;
  }
  // Never closed: NCCL is about to open it as well.
  if (!isOurs && dlopen(defaultProfiler, RTLD_LAZY | RTLD_LOCAL)) return sayPlaceIsTaken(defaultProfiler);
  if (!loadOurs(build))
    log::info(
        "Falcon does not see the channels and proxies of the vendor's NCCL: {} is not there, or not of this build",
        profiler::ownProfilerFile);
}

}  // namespace falcon::control
