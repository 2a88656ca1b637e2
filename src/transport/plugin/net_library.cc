#include "transport/plugin/net_library.h"

#include <dlfcn.h>

#include <iterator>
#include <optional>

#include "transport/plugin/plugin_names.h"

namespace falcon::transport::net {
namespace {

Result<NetLibrary> newestOf(void* library, const std::string& file) {
  for (const NetVersion& version : netVersions)
    if (const void* symbol = dlsym(library, version.symbol))
      return NetLibrary{file, version.adapt(symbol),
                        static_cast<const falconNetState_v1_t*>(dlsym(library, FALCON_NET_STATE_SYMBOL))};
  return Error::system("External network plugin {} is unsupported: it has none of {} to {}", file,
                       std::rbegin(netVersions)->symbol, std::begin(netVersions)->symbol);
}

}  // namespace

Result<NetLibrary> loadNetLibrary(const std::string& name) {
  std::string notFound;
  std::optional<Error> reason;
  for (const std::string& file : filesOf(name)) {
    void* library = dlopen(file.empty() ? nullptr : file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) {
      auto loaded = newestOf(library, file.empty() ? name : file);
      if (!loaded) dlclose(library);
      return loaded;
    }
    const char* said = dlerror();
    const std::string problem = said ? said : "the loader does not say why";
    const bool missing = problem.find(file) != std::string::npos &&
                         problem.find("No such file or directory") != std::string::npos && problem.starts_with(file);
    if (missing)
      notFound += " " + file;
    else if (!reason)
      reason = Error::system("NET/Plugin: {}: {}", file, problem);
  }
  if (reason) return *reason;
  return Error::system("NET/Plugin: Could not find:{}", notFound);
}

}  // namespace falcon::transport::net
