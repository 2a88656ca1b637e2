#include "exec/chained_profiler.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/own_files.h"
#include "base/parameters.h"
#include "exec/loaded_library.h"
#include "plugin/plugin_names.h"
#include "plugin/profiler/own_profiler.h"
#include "plugin/profiler/profiler_calls.h"

namespace falcon::tools {
namespace {

constexpr int firstWithVersion4 = 22700;

/// One that ours can tell.
bool hasKnownVersion(const std::string& name) {
  for (const std::string& file : plugin::filesOf(plugin::profilerKind.file, name)) {
    void* const library = file.empty() ? nullptr : dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
    for (const auto& version : plugin::profilerVersions)
      if (library && dlsym(library, version.symbol)) return true;
  }
  return false;
}

/// Opening a library runs its code.
bool hasKnownVersionInChild(const std::string& name) {
  const pid_t child = fork();
  if (child == 0) _exit(hasKnownVersion(name) ? 0 : 1);
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::optional<std::pair<std::string, std::string>> chainedProfiler(const std::vector<std::string>& program) {
  const char* const set = std::getenv(parameters::profilerPlugin.name());
  const std::string theirs = set ? set : "";
  const bool isTheirs = !theirs.empty() && !plugin::sameWithoutCase(theirs, "none") && !profiler::isOwnProfiler(theirs);
  if (!isTheirs || parameters::chainedProfiler.isSet() || parameters::ownProfiler.value() == profiler::ownProfilerOff)
    return std::nullopt;
  const auto ours = ownLibrary(profiler::ownProfilerFile);
  const auto library = libraryOf(program);
  if (!ours || !library || library->path.empty()) return std::nullopt;
  const auto facts = factsOf(library->path);
  if (!facts || facts->isFalcon || facts->version < firstWithVersion4 || !hasKnownVersionInChild(theirs))
    return std::nullopt;
  return std::pair(*ours, theirs);
}

}  // namespace falcon::tools
