// What both ends of a connection through a plugin have in common.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "transport/plugin/net_directory.h"
#include "transport/plugin/plugin_frame.h"

namespace falcon::transport {

/// Time is all that helps who waits for a plugin: it has nothing to sleep on.
inline constexpr WaitSource pluginWaitSource{.kind = WaitSource::Kind::socket, .descriptor = -1, .events = 0};

/// Memory for the messages of one end, as many as a connection holds.
class PluginSlots {
 public:
  explicit PluginSlots(std::size_t chunkBytes);

  std::byte* message(std::uint64_t number) const { return memory_.get() + number % chunkSlots * slotBytes_; }
  std::byte* payload(std::uint64_t number) const { return message(number) + sizeof(PluginFrame); }
  /// All of it, for registration.
  void* data() const { return memory_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  const std::size_t slotBytes_;
  const std::size_t bytes_;
  const std::unique_ptr<std::byte, Free> memory_;
};

/// One end: whom it talks to, by which plugin, and whether that has failed. Used by one thread at a time.
class PluginLine {
 public:
  /// @param device    of the plugin's, this rank's
  /// @param peerName  for messages
  /// @param tokenOf   what the other end will send or expect, once the handle is known
  PluginLine(std::shared_ptr<net::NetSession> session, int device, std::string peerName,
             std::function<PluginToken(const PluginHandle&)> tokenOf)
      : session_(std::move(session)), device_(device), peerName_(std::move(peerName)), tokenOf_(std::move(tokenOf)) {}

  const net::NetCalls& calls() const { return session_->calls(); }
  void* context() const { return session_->context(); }
  int device() const { return device_; }
  const std::string& peerName() const { return peerName_; }
  PluginToken tokenOf(const PluginHandle& handle) const { return tokenOf_(handle); }

  /// The first that went wrong; it stays.
  const std::optional<Error>& failure() const { return failure_; }
  /// `error` was decided elsewhere.
  Error fail(Error error);
  /// A function of the plugin's returned that.
  Error failed(std::string_view function, net::ResultCode result);
  /// The connecting begins: it has NCCL_FALCON_INIT_TIMEOUT.
  void startConnecting() { connectingSince_ = SystemClock::instance().now(); }
  /// After another vain try. An error once it has lasted too long.
  Status stillConnecting();

 private:
  const std::shared_ptr<net::NetSession> session_;
  const int device_;
  const std::string peerName_;
  const std::function<PluginToken(const PluginHandle&)> tokenOf_;
  Nanoseconds connectingSince_{0};
  std::optional<Error> failure_;
};

}  // namespace falcon::transport
