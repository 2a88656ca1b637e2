// Ports over a connected stream socket. The kernel's own back-pressure is the credit; memory is bounded on both sides.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "base/owned.h"
#include "transport/chunk_ring.h"
#include "transport/link_throttle.h"
#include "transport/pacing.h"
#include "transport/port.h"

namespace falcon::transport {

/// Before every chunk on the wire. Frames are padded to whole headers, so that payloads are aligned for the reducers.
struct FrameHeader {
  static constexpr std::uint32_t expectedMagic = 0x46434b31;
  std::uint32_t magic = expectedMagic;
  std::uint32_t length = 0;
  std::uint64_t sequence = 0;

  static constexpr std::size_t paddingOf(std::size_t payload) {
    return (sizeof(FrameHeader) - payload % sizeof(FrameHeader)) % sizeof(FrameHeader);
  }
  static constexpr std::size_t frameBytes(std::size_t payload) {
    return sizeof(FrameHeader) + payload + paddingOf(payload);
  }
};
static_assert(sizeof(FrameHeader) == 16);

/// Payloads from this size on are read and written where the caller has them. Of smaller ones several come with one
/// read, which is worth more than the copy (Broadcasts of 64 KiB in a row: 20 us instead of 45).
inline constexpr std::size_t leastInPlace = 96 << 10;

/// Of one direction of a connection, or of both: this end's two ports share it.
using SharedSocket = std::shared_ptr<const FileDescriptor>;

class SocketSendPort final : public SendPort {
 public:
  /// @param socket    connected, not blocking
  /// @param peerName  for messages: "rank 3 (10.0.0.2:4000)"
  /// @param throttle  null: as fast as it goes
  SocketSendPort(SharedSocket socket, std::string peerName, std::size_t chunkBytes,
                 std::shared_ptr<LinkThrottle> throttle, std::atomic<std::uint64_t>& bytesSent);

  std::size_t chunkBytes() const override { return chunkBytes_; }
  Result<std::span<std::byte>> acquire() override;
  void commit(std::size_t bytes) override;
  bool sendsInPlace(std::size_t bytes) const override { return bytes >= leastInPlace; }
  void commitFrom(std::span<const std::byte> data, bool more) override;
  Result<bool> progress() override;
  bool flushed() const override { return sent_ == committed_; }
  WaitSource waitSource() const override;
  std::optional<Nanoseconds> underWay() const override;
  /// Chunks that the kernel has taken completely.
  std::uint64_t framesSent() const { return sent_; }

 private:
  std::byte* frame(std::uint64_t number) { return frames_.get() + number % chunkSlots * frameStride_; }
  void append(std::size_t bytes, const std::byte* external);
  bool sendPending();
  bool sendOnce();
  void noteSent(std::size_t bytes);

  SharedSocket socket_;
  Pacing pacing_;
  std::string peerName_;
  std::size_t chunkBytes_;
  std::size_t frameStride_;
  std::shared_ptr<LinkThrottle> throttle_;
  std::atomic<std::uint64_t>& bytesSent_;
  std::unique_ptr<std::byte[]> frames_;
  struct Pending {
    std::size_t frameBytes = 0;
    std::size_t payload = 0;
    const std::byte* external = nullptr;  // where the payload is; null: behind the header
  };
  std::array<Pending, chunkSlots> pending_{};
  std::uint64_t committed_ = 0;
  std::uint64_t sent_ = 0;      // frames that the kernel has taken completely
  std::size_t sentOfNext_ = 0;  // bytes of frame sent_ that it has taken
  bool throttled_ = false;
  std::optional<Error> failure_;
};

class SocketReceivePort final : public ReceivePort {
 public:
  SocketReceivePort(SharedSocket socket, std::string peerName, std::size_t chunkBytes);

  std::size_t chunkBytes() const override { return chunkBytes_; }
  Result<bool> ready() override;
  Result<bool> readyInto(std::span<std::byte> to) override;
  std::span<const std::byte> chunk() const override { return chunk_; }
  void release() override;
  WaitSource waitSource() const override;

 private:
  Result<bool> frameIsThere();
  Result<bool> headerIsThere();
  Result<bool> beginInPlace(std::span<std::byte> to);
  Result<bool> readInPlace();
  Result<bool> readMore(std::size_t most);
  Result<std::size_t> bytesRead(ssize_t got) const;
  void dropPadding();

  SharedSocket socket_;
  std::string peerName_;
  std::size_t chunkBytes_;
  std::size_t capacity_;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t begin_ = 0;  // unread bytes are [begin_, end_)
  std::size_t end_ = 0;
  std::size_t padding_ = 0;         // of the frame before, still to come
  std::span<std::byte> inPlace_{};  // where the present frame's payload goes; empty: into the buffer
  std::size_t placed_ = 0;          // bytes of it that are there
  FrameHeader header_;
  std::uint64_t received_ = 0;
  std::span<const std::byte> chunk_;
  bool shown_ = false;
  std::optional<Error> failure_;
};

}  // namespace falcon::transport
