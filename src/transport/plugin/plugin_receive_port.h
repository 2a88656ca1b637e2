// The receiving end of a connection through a plugin.
#pragma once

#include <array>

#include "transport/plugin/plugin_line.h"
#include "transport/port.h"

namespace falcon::transport {

/// Listens and says where when it is first waited on. Asks the plugin for no more messages than the sender has said
/// will come, or its user waits for: so none is left over when both are done, which some plugins take amiss.
class PluginReceivePort final : public ReceivePort {
 public:
  /// @param control  takes the handle to the sender; its chunks are as large as this port's
  /// @param notice  brings word that the sender has begun to connect
  PluginReceivePort(PluginLine line, SendPort& control, ReceivePort& notice);
  ~PluginReceivePort() override;

  std::size_t chunkBytes() const override { return chunkBytes_; }
  Result<bool> ready() override;
  std::span<const std::byte> chunk() const override { return chunk_; }
  void release() override;
  WaitSource waitSource() const override;

 private:
  enum class Stage { silent, listening, expecting, accepting, open };

  Result<bool> listen();
  Result<bool> sendHandle();
  Result<bool> expect();
  Result<bool> accept();
  Status post();
  Result<bool> test();
  Status show(int bytes);

  PluginLine line_;
  SendPort& control_;
  ReceivePort& notice_;
  const std::size_t chunkBytes_;
  const PluginSlots slots_;
  Stage stage_ = Stage::silent;
  bool handleIsSent_ = false;  // to the control port, at least
  PluginHandle handle_{};
  PluginToken token_{};
  void* listener_ = nullptr;
  void* comm_ = nullptr;
  void* registered_ = nullptr;  // the slots
  bool isRegistered_ = false;
  std::array<void*, chunkSlots> requests_{};
  std::uint64_t announced_ = 0;  // by the sender
  std::uint64_t posted_ = 0;     // asked of the plugin
  std::uint64_t received_ = 0;   // taken by the user
  std::span<const std::byte> chunk_{};
  bool shown_ = false;
};

}  // namespace falcon::transport
