#include "profiler/chained_name.h"

#include <dlfcn.h>

#include "base/parameters.h"
#include "plugin/plugin_names.h"
#include "plugin/profiler/profiler_calls.h"

namespace falcon::profiler {
namespace {

/// It is loaded, and more than a net plugin.
bool hasProfiler(const std::string& file) {
  void* const library = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!library) {
    dlerror();  // is nobody's
    return false;
  }
  bool has = false;
  for (const auto& version : plugin::profilerVersions) has = has || dlsym(library, version.symbol);
  dlclose(library);
  dlerror();
  return has;
}

}  // namespace

std::string chainedName() {
  if (parameters::chainedProfiler.isSet()) return parameters::chainedProfiler.value();
  if (!parameters::profilerPlugin.value().empty()) return "";
  for (const std::string& name : plugin::pluginNames(parameters::netPlugin.value()))
    for (const std::string& file : plugin::filesOf("net", name))
      if (!file.empty() && hasProfiler(file)) return file;
  return "";
}

}  // namespace falcon::profiler
