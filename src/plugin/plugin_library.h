// Finds and opens a plugin's library, of whatever kind, and what in it is of the newest version that we know.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"

namespace falcon::plugin {

/// What the messages and file names of a kind of plugin are made of.
struct PluginKind {
  const char* file;   ///< libnccl-<file>-x.so
  const char* title;  ///< as NCCL's lines call it: "NET", "PROFILER", "TUNER"
  const char* noun;   ///< "network", "profiler", "tuner"
};

struct FoundSymbol {
  std::string file;         ///< as it was opened
  void* library;            ///< of dlopen
  const void* symbol;       ///< lives as long as the process
  std::size_t version = 0;  ///< which of the `symbols`
};

/// Opens the library that `name` means and gives the first of `symbols` that it has. It stays loaded until the process
/// ends: threads of its own may run on.
/// Errors (system), not logged: there is no such file, it cannot be loaded, or it has none of the symbols.
Result<FoundSymbol> openPlugin(const PluginKind& kind, const std::string& name, std::span<const char* const> symbols);

/// A plugin by the newest version of its interface that both it and we know.
/// @tparam Calls  what the adapters of all versions are
template <class Calls>
struct PluginLibrary {
  std::string file;  ///< as it was opened
  std::unique_ptr<Calls> calls;
  void* library = nullptr;  ///< of dlopen: it may export more
};

/// A version of an interface: its symbol, and what translates its struct.
template <class Calls>
struct PluginVersion {
  const char* symbol;
  std::unique_ptr<Calls> (*adapt)(const void* symbol);
};

/// By a name of the kind's variable. `versions`: newest first. Errors as of openPlugin().
template <class Calls, std::size_t count>
Result<PluginLibrary<Calls>> loadPlugin(const PluginKind& kind, const std::string& name,
                                        const PluginVersion<Calls> (&versions)[count]) {
  const char* symbols[count];
  for (std::size_t i = 0; i < count; ++i) symbols[i] = versions[i].symbol;
  auto found = openPlugin(kind, name, symbols);
  if (!found) return found.error();
  return PluginLibrary<Calls>{std::move(found->file), versions[found->version].adapt(found->symbol), found->library};
}

}  // namespace falcon::plugin
