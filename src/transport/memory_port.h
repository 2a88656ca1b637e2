// Ports over memory that both ends see: a shared segment, or plain memory for a port to oneself.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "transport/chunk_ring.h"
#include "transport/doorbell.h"
#include "transport/port.h"

namespace falcon::transport {

/// Keeps what the other end must not lose: the memory, and the doorbell of who sleeps there.
struct MemoryLine {
  std::shared_ptr<SharedSegment> segment;
  std::shared_ptr<Doorbell> peerDoorbell;
  std::string peerName;  ///< for messages: "rank 3 (10.0.0.2:4000)"
};

class MemorySendPort final : public SendPort {
 public:
  MemorySendPort(MemoryLine line, std::size_t chunkBytes, std::atomic<std::uint64_t>& bytesSent);
  ~MemorySendPort() override;

  std::size_t chunkBytes() const override { return chunkBytes_; }
  Result<std::span<std::byte>> acquire() override;
  void commit(std::size_t bytes) override;
  Result<bool> progress() override { return false; }
  bool flushed() const override { return true; }
  WaitSource waitSource() const override { return {.kind = WaitSource::Kind::doorbell}; }

 private:
  MemoryLine line_;
  std::size_t chunkBytes_;
  std::atomic<std::uint64_t>& bytesSent_;
  ChunkProducer producer_;
  std::optional<Error> failure_;
};

class MemoryReceivePort final : public ReceivePort {
 public:
  MemoryReceivePort(MemoryLine line, std::size_t chunkBytes);
  ~MemoryReceivePort() override;

  std::size_t chunkBytes() const override { return chunkBytes_; }
  Result<bool> ready() override;
  std::span<const std::byte> chunk() const override { return consumer_.chunk(); }
  void release() override;
  WaitSource waitSource() const override { return {.kind = WaitSource::Kind::doorbell}; }

 private:
  MemoryLine line_;
  std::size_t chunkBytes_;
  ChunkConsumer consumer_;
  std::optional<Error> failure_;
};

}  // namespace falcon::transport
