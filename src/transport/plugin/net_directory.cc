#include "transport/plugin/net_directory.h"

#include <unistd.h>

#include "base/log.h"
#include "base/net_parameters.h"
#include "base/parameters.h"
#include "base/per_process.h"
#include "plugin/plugin_names.h"
#include "plugin/result_text.h"
#include "transport/plugin/net_check.h"

namespace falcon::transport::net {

using plugin::resultText;
using plugin::sameWithoutCase;

namespace {

constinit PerProcess<NetDirectory> ofThisProcess;

}  // namespace

int NetSession::ownProcess() {
  return getpid();
}

NetSession::~NetSession() {
  // A forked child's plugin is its parent's as it was at that moment: it is not called.
  if (!calls_.hasContexts() || getpid() != process_) return;
  if (const ResultCode result = calls_.finalize(context_); result != success)
    log::warn("net plugin {}: finalize returned {}", calls_.name(), resultText(result));
}

NetDirectory& processNets() {
  return ofThisProcess.get();
}

NetDirectory::NetDirectory() : NetDirectory(plugin::pluginNames(parameters::netPlugin.value())) {}

NetDirectory::NetDirectory(std::vector<std::string> plugins) {
  for (std::string& name : plugins) plugins_.push_back({.name = std::move(name)});
}

Result<std::shared_ptr<NetSession>> NetDirectory::open(CommunicatorId communicator, const std::string& wish,
                                                       std::size_t messageBytes) {
  const std::lock_guard lock(mutex_);
  for (Plugin& plugin : plugins_) {
    if (plugin.state == State::unopened) load(plugin);
    if (plugin.state == State::off) continue;
    const char* name = plugin.library.calls->name();
    if (!wish.empty() && !sameWithoutCase(wish, name)) continue;
    auto session = begin(plugin, communicator, messageBytes);
    if (!session) continue;
    log::info("Assigned NET plugin {} to comm", name);
    turnOffAllBut(plugin);
    return session;
  }
  if (!wish.empty() && !sameWithoutCase(wish, socketNetwork)) return log::decided(nobodyNamed(wish));
  log::info("Assigned NET plugin {} to comm", socketNetwork);
  return std::shared_ptr<NetSession>();
}

std::optional<NetSnapshot> NetDirectory::snapshot() {
  const std::unique_lock lock(mutex_, std::try_to_lock);  // a plugin's init() may take long
  if (!lock) return std::nullopt;
  for (const Plugin& plugin : plugins_) {
    if (plugin.state != State::opened || plugin.devices == 0) continue;
    if (plugin.tells) return snapshotOf(*plugin.tells);
    if (plugin.wrapped)
      return NetSnapshot{plugin.wrapped->name(), plugin.wrapped->devices(), plugin.wrapped->connections()};
    return std::nullopt;
  }
  return std::nullopt;
}

void NetDirectory::load(Plugin& plugin) {
  auto library = loadNetLibrary(plugin.name);
  if (!library) {
    // As NCCL: what most machines do not have is no warning.
    log::info("{}", library.error().message());
    plugin.state = State::off;
    plugin.why = library.error().message();
    return;
  }
  plugin.library = std::move(*library);
  if (auto objection = objectionTo(*plugin.library.calls)) return decline(plugin, std::move(*objection));
  plugin.tells = stateOf(plugin.library);
  if (parameters::netWrap.value() && !plugin.tells) {
    auto wrapped = std::make_unique<WrappedNet>(std::move(plugin.library.calls));
    plugin.wrapped = wrapped.get();
    plugin.library.calls = std::move(wrapped);
  }
  plugin.state = State::opened;
  log::info("NET/Plugin: Loaded net plugin {} (v{})", plugin.library.calls->name(), plugin.library.calls->version());
  log::info("Successfully loaded external network plugin {}", plugin.library.file);
}

void NetDirectory::decline(Plugin& plugin, std::string why) {
  const char* name = plugin.library.calls->name();
  plugin.state = State::off;
  plugin.why = fmt::format("net plugin {} (v{} of {}) is not used: {}", name ? name : plugin.name,
                           plugin.library.calls->version(), plugin.library.file, why);
  log::warn("{}", plugin.why);
}

std::shared_ptr<NetSession> NetDirectory::begin(Plugin& plugin, CommunicatorId communicator, std::size_t messageBytes) {
  const NetCalls& calls = *plugin.library.calls;
  void* context = nullptr;
  if (calls.hasContexts() || !plugin.begun) {
    if (const ResultCode result = calls.init(communicator, &context); result != success) {
      log::info("Failed to initialize NET plugin {}", calls.name());
      decline(plugin, fmt::format("init returned {}", resultText(result)));
      return nullptr;
    }
    plugin.begun = true;
  }
  if (auto objection = examine(plugin, messageBytes)) {
    log::info("Failed to initialize NET plugin {}", calls.name());
    if (calls.hasContexts()) static_cast<void>(calls.finalize(context));
    decline(plugin, std::move(*objection));
    return nullptr;
  }
  log::info("Initialized NET plugin {}", calls.name());
  return std::make_shared<NetSession>(calls, context, plugin.devices);
}

std::optional<std::string> NetDirectory::examine(Plugin& plugin, std::size_t messageBytes) const {
  const NetCalls& calls = *plugin.library.calls;
  if (plugin.devices == 0) {
    int count = 0;
    if (const ResultCode result = calls.devices(&count); result != success)
      return fmt::format("devices returned {}", resultText(result));
    if (count < 1) return fmt::format("it has no device (devices says {})", count);
    plugin.devices = count;
  }
  for (int device = 0; device < plugin.devices; ++device) {
    DeviceProperties properties;
    if (const ResultCode result = calls.getProperties(device, properties); result != success)
      return fmt::format("getProperties of device {} returned {}", device, resultText(result));
    if (auto objection = objectionTo(properties, device, messageBytes)) return objection;
  }
  return std::nullopt;
}

void NetDirectory::turnOffAllBut(const Plugin& chosen) {
  std::string names;
  for (Plugin& plugin : plugins_) {
    if (&plugin == &chosen || plugin.state == State::off) continue;
    plugin.state = State::off;
    plugin.why = fmt::format("net plugin {} is not used: {} is", plugin.name, chosen.library.calls->name());
    names += (names.empty() ? "" : ", ") + plugin.name;
  }
  if (!names.empty()) log::info("Disabling external plugins: {}", names);
}

Error NetDirectory::nobodyNamed(const std::string& wish) const {
  std::string have;
  for (const Plugin& plugin : plugins_)
    have += (plugin.state == State::off ? plugin.why : plugin.library.calls->name()) + std::string("; ");
  return Error::invalidUsage(
      "Failed to initialize any NET plugin: NCCL_NET={} names none that can be used here. There are: {}{}. Unset it, "
      "or "
      "load the plugin of that name with NCCL_NET_PLUGIN",
      wish, have, socketNetwork);
}

}  // namespace falcon::transport::net
