// The networks that communicators of this process may have: plugins, and our sockets last.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "transport/plugin/net_library.h"
#include "transport/plugin/net_snapshot.h"
#include "transport/plugin/wrapped_net.h"

namespace falcon::transport::net {

/// Our own sockets, by NCCL's name for its own.
inline constexpr const char* socketNetwork = "Socket";

/// A communicator's use of a plugin: ends with the last who holds it. Thread-safe as far as the plugin is: see
/// NetCalls.
class NetSession {
 public:
  NetSession(const NetCalls& calls, void* context, int devices) : calls_(calls), context_(context), devices_(devices) {}
  ~NetSession();
  NetSession(const NetSession&) = delete;
  NetSession& operator=(const NetSession&) = delete;

  const NetCalls& calls() const { return calls_; }
  void* context() const { return context_; }
  int devices() const { return devices_; }

 private:
  const NetCalls& calls_;  // in the directory, which lasts
  void* const context_;
  const int devices_;
  const int process_ = ownProcess();

  static int ownProcess();
};

/// Thread-safe. Lives at least as long as its sessions.
class NetDirectory {
 public:
  /// By the names of NCCL_NET_PLUGIN, in their order.
  explicit NetDirectory(std::vector<std::string> plugins);
  /// As the environment says.
  NetDirectory();

  /// The network of a new communicator: the first plugin that is sound, or our sockets (null). Where one is taken, the
  /// other plugins are not asked any more. A plugin that fails is not tried again.
  /// @param wish          of NCCL_NET: only a network of that name, whatever its case; "": any
  /// @param messageBytes  how long messages are to be possible
  /// Errors (invalidUsage): no sound network has the name that is wished.
  Result<std::shared_ptr<NetSession>> open(CommunicatorId communicator, const std::string& wish,
                                           std::size_t messageBytes);
  /// What the plugin in use tells of the network, or what is seen of it where it is wrapped. Nothing: neither, or
  /// another thread is in open().
  std::optional<NetSnapshot> snapshot();

 private:
  enum class State { unopened, opened, off };
  struct Plugin {
    std::string name;  // of the list
    State state = State::unopened;
    NetLibrary library{};
    const falconNetState_v1_t* tells = nullptr;  // of the network, where it does
    const WrappedNet* wrapped = nullptr;         // library.calls, where NCCL_FALCON_NET_WRAP wants it
    bool begun = false;                          // init() has succeeded, where it is called once
    int devices = 0;                             // 0: not asked yet
    std::string why = "";                        // it is off
  };

  // With mutex_ held.
  void load(Plugin& plugin);
  void decline(Plugin& plugin, std::string why);
  std::shared_ptr<NetSession> begin(Plugin& plugin, CommunicatorId communicator, std::size_t messageBytes);
  /// Why it cannot be used; nothing: `plugin.devices` is known.
  std::optional<std::string> examine(Plugin& plugin, std::size_t messageBytes) const;
  void turnOffAllBut(const Plugin& chosen);
  Error nobodyNamed(const std::string& wish) const;

  std::mutex mutex_;
  std::vector<Plugin> plugins_;
};

/// This process's; a forked child has one of its own.
NetDirectory& processNets();

}  // namespace falcon::transport::net
