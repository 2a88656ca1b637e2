#include "plugin/plugin_library.h"

#include <dlfcn.h>

#include <optional>

#include "plugin/plugin_names.h"

namespace falcon::plugin {
namespace {

Result<FoundSymbol> newestOf(void* library, const PluginKind& kind, const std::string& file,
                             std::span<const char* const> symbols) {
  for (std::size_t i = 0; i < symbols.size(); ++i)
    if (const void* symbol = dlsym(library, symbols[i])) return FoundSymbol{file, library, symbol, i};
  return Error::system("External {} plugin {} is unsupported: it has none of {} to {}", kind.noun, file, symbols.back(),
                       symbols.front());
}

}  // namespace

Result<FoundSymbol> openPlugin(const PluginKind& kind, const std::string& name, std::span<const char* const> symbols) {
  std::string notFound;
  std::optional<Error> reason;
  for (const std::string& file : filesOf(kind.file, name)) {
    void* library = dlopen(file.empty() ? nullptr : file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) {
      auto found = newestOf(library, kind, file.empty() ? name : file, symbols);
      if (!found) dlclose(library);
      return found;
    }
    const char* said = dlerror();
    const std::string problem = said ? said : "the loader does not say why";
    const bool missing = problem.find(file) != std::string::npos &&
                         problem.find("No such file or directory") != std::string::npos && problem.starts_with(file);
    if (missing)
      notFound += " " + file;
    else if (!reason)
      reason = Error::system("{}/Plugin: {}: {}", kind.title, file, problem);
  }
  if (reason) return *reason;
  return Error::system("{}/Plugin: Could not find:{}", kind.title, notFound);
}

}  // namespace falcon::plugin
