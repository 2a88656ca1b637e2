// What the engine holds while a connection is being made behind its back: no credit and no data until it is attached.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "transport/port.h"
#include "transport/shared_segment.h"
#include "transport/socket_port.h"

namespace falcon::transport {

/// Gets its port, or the reason why there is none, once, from another thread.
template <class Port>
class Connecting {
 public:
  void attach(std::unique_ptr<Port> port) {
    port_ = std::move(port);
    attached_.store(port_.get(), std::memory_order_release);
  }
  void fail(Error error) {
    error_ = std::move(error);
    failed_.store(true, std::memory_order_release);
  }
  bool decided() const { return port() != nullptr || failure() != nullptr; }

  /// Null while there is none.
  Port* port() const { return attached_.load(std::memory_order_acquire); }
  const Error* failure() const { return failed_.load(std::memory_order_acquire) ? &*error_ : nullptr; }

 private:
  std::unique_ptr<Port> port_;
  std::optional<Error> error_;
  std::atomic<Port*> attached_{nullptr};
  std::atomic<bool> failed_{false};
};

/// A port's wait source while it is being connected: who attaches it rings the process's doorbell.
inline constexpr WaitSource connectingSource{.kind = WaitSource::Kind::doorbell};

class ConnectingSendPort final : public SendPort {
 public:
  explicit ConnectingSendPort(std::size_t chunkBytes) : chunkBytes_(chunkBytes) {}

  std::size_t chunkBytes() const override { return chunkBytes_; }
  Result<std::span<std::byte>> acquire() override {
    if (SendPort* port = connection.port()) [[likely]]
      return port->acquire();
    if (const Error* error = connection.failure()) return *error;
    return std::span<std::byte>();
  }
  void commit(std::size_t bytes) override { connection.port()->commit(bytes); }
  bool sendsInPlace(std::size_t bytes) const override { return connection.port()->sendsInPlace(bytes); }
  void commitFrom(std::span<const std::byte> data, bool more) override { connection.port()->commitFrom(data, more); }
  Result<bool> progress() override {
    if (SendPort* port = connection.port()) [[likely]]
      return port->progress();
    if (const Error* error = connection.failure()) return *error;
    return false;
  }
  bool flushed() const override {
    const SendPort* port = connection.port();
    return port == nullptr || port->flushed();
  }
  WaitSource waitSource() const override {
    const SendPort* port = connection.port();
    return port == nullptr ? connectingSource : port->waitSource();
  }
  std::optional<Nanoseconds> underWay() const override {
    const SendPort* port = connection.port();
    return port == nullptr ? std::nullopt : port->underWay();
  }

  Connecting<SendPort> connection;
  // While the peer has not answered yet; guarded by who connects.
  std::vector<SharedSocket> sockets;  // null: still on its way there
  std::size_t answered = 0;           // of them
  std::shared_ptr<SharedSegment> offered;
  bool isForBothWays = false;  // the only socket was offered so, and not refused

 private:
  std::size_t chunkBytes_;
};

class ConnectingReceivePort final : public ReceivePort {
 public:
  explicit ConnectingReceivePort(std::size_t chunkBytes) : chunkBytes_(chunkBytes) {}

  std::size_t chunkBytes() const override { return chunkBytes_; }
  Result<bool> ready() override {
    if (ReceivePort* port = connection.port()) [[likely]]
      return port->ready();
    if (const Error* error = connection.failure()) return *error;
    return false;
  }
  Result<bool> readyInto(std::span<std::byte> to) override {
    if (ReceivePort* port = connection.port()) [[likely]]
      return port->readyInto(to);
    return ready();
  }
  std::span<const std::byte> chunk() const override { return connection.port()->chunk(); }
  void release() override { connection.port()->release(); }
  WaitSource waitSource() const override {
    const ReceivePort* port = connection.port();
    return port == nullptr ? connectingSource : port->waitSource();
  }

  Connecting<ReceivePort> connection;
  // Until all of the sender's sockets have come; guarded by who connects.
  std::vector<SharedSocket> arrived;

 private:
  std::size_t chunkBytes_;
};

}  // namespace falcon::transport
