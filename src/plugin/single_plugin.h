// A plugin of a kind of which a process has one.
#pragma once

#include <string>
#include <utility>

#include "base/log.h"
#include "plugin/plugin_library.h"
#include "plugin/plugin_names.h"

namespace falcon::plugin {

/// Found and checked at the first need. A plugin that is not sound is named with the reason once, and not tried again.
/// One thread at a time.
template <class Calls>
class SinglePlugin {
 public:
  /// @param name      of the kind's variable; "" or "none": no plugin
  /// @param variable  which one that is, for what is said
  SinglePlugin(const PluginKind& kind, const char* variable, std::string name)
      : kind_(kind),
        variable_(variable),
        name_(std::move(name)),
        state_(name_.empty() || sameWithoutCase(name_, "none") ? State::off : State::unopened) {}

  /// Null: there is none, or it is not sound.
  template <std::size_t count>
  const Calls* get(const PluginVersion<Calls> (&versions)[count]) {
    if (state_ == State::unopened) load(versions);
    return state_ == State::opened ? library_.calls.get() : nullptr;
  }

  /// It is not used from now on. What uses it already goes on.
  void decline(const std::string& why) {
    state_ = State::off;
    const char* own = library_.calls->name();
    log::warn("{} plugin {} (v{} of {}) is not used: {}", kind_.noun, own ? own : name_, library_.calls->version(),
              library_.file, why);
  }

 private:
  enum class State { unopened, opened, off };

  template <std::size_t count>
  void load(const PluginVersion<Calls> (&versions)[count]) {
    auto library = loadPlugin(kind_, name_, versions);
    if (!library) {
      state_ = State::off;
      log::warn("{}={}: {}; this process has no {} plugin. Give a path, or a name whose library the loader finds",
                variable_, name_, library.error().message(), kind_.noun);
      return;
    }
    library_ = std::move(*library);
    std::string members;
    for (const char* member : library_.calls->missing()) members += (members.empty() ? "" : ", ") + std::string(member);
    if (!members.empty()) return decline("its struct lacks " + members);
    state_ = State::opened;
    log::info("{}/Plugin: Using {} (v{})", kind_.title, library_.calls->name(), library_.calls->version());
    log::info("Successfully loaded external {} plugin {}", kind_.noun, library_.file);
  }

  const PluginKind kind_;
  const char* const variable_;
  const std::string name_;
  State state_;
  PluginLibrary<Calls> library_;
};

}  // namespace falcon::plugin
