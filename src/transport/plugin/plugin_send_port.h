// The sending end of a connection through a plugin.
#pragma once

#include <array>
#include <atomic>

#include "transport/plugin/plugin_line.h"
#include "transport/port.h"

namespace falcon::transport {

/// Takes chunks at once, and sends them as soon as the receiver has said where it listens and the plugin has connected.
class PluginSendPort final : public SendPort {
 public:
  /// @param control  brings the receiver's handle; its chunks are as large as this port's
  /// @param notice   tells the receiver that this end has begun to connect
  PluginSendPort(PluginLine line, ReceivePort& control, SendPort& notice, std::atomic<std::uint64_t>& bytesSent);
  ~PluginSendPort() override;

  std::size_t chunkBytes() const override { return chunkBytes_; }
  Result<std::span<std::byte>> acquire() override;
  void commit(std::size_t bytes) override;
  Result<bool> progress() override;
  bool flushed() const override { return done_ == committed_; }
  WaitSource waitSource() const override;

 private:
  enum class Stage { invited, connecting, open };

  Result<bool> takeHandle();
  Result<bool> announce();
  Result<bool> connect();
  Result<bool> move();
  Result<bool> post();
  Result<bool> test();

  PluginLine line_;
  ReceivePort& control_;
  SendPort& notice_;
  std::atomic<std::uint64_t>& bytesSent_;
  const std::size_t chunkBytes_;
  const PluginSlots slots_;
  Stage stage_ = Stage::invited;
  bool noticeIsSent_ = false;  // to the notice port, at least
  bool isAnnounced_ = false;   // and it has left
  PluginHandle handle_{};
  PluginToken token_{};
  void* comm_ = nullptr;
  void* registered_ = nullptr;  // the slots
  bool isRegistered_ = false;
  std::array<void*, chunkSlots> requests_{};
  std::uint64_t committed_ = 0;
  std::uint64_t posted_ = 0;  // handed to the plugin
  std::uint64_t done_ = 0;    // that it is through with
};

}  // namespace falcon::transport
