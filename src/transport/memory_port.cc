#include "transport/memory_port.h"

#include "base/log.h"

namespace falcon::transport {
namespace {

Error failureOf(RingState state, const std::string& peer) {
  return log::decided(state == RingState::closed
                          ? Error::remote("{} has left while bytes to or from it were expected", peer)
                          : Error::remote("{} wrote nonsense into the memory shared with it", peer));
}

}  // namespace

MemorySendPort::MemorySendPort(MemoryLine line, std::size_t chunkBytes, std::atomic<std::uint64_t>& bytesSent)
    : line_(std::move(line)),
      chunkBytes_(chunkBytes),
      bytesSent_(bytesSent),
      producer_(line_.segment->memory(), chunkBytes) {}

MemorySendPort::~MemorySendPort() {
  producer_.close();
  line_.peerDoorbell->ring();
}

Result<std::span<std::byte>> MemorySendPort::acquire() {
  if (failure_) return *failure_;
  switch (const RingState state = producer_.state()) {
    case RingState::ready:
      return producer_.slot();
    case RingState::stuck:
      return std::span<std::byte>();
    default:
      failure_ = failureOf(state, line_.peerName);
      return *failure_;
  }
}

void MemorySendPort::commit(std::size_t bytes) {
  bytesSent_.fetch_add(bytes, std::memory_order_relaxed);
  producer_.publish(bytes);
  line_.peerDoorbell->ring();
}

MemoryReceivePort::MemoryReceivePort(MemoryLine line, std::size_t chunkBytes)
    : line_(std::move(line)), chunkBytes_(chunkBytes), consumer_(line_.segment->memory(), chunkBytes) {}

MemoryReceivePort::~MemoryReceivePort() {
  consumer_.close();
  line_.peerDoorbell->ring();
}

Result<bool> MemoryReceivePort::ready() {
  if (failure_) return *failure_;
  switch (const RingState state = consumer_.state()) {
    case RingState::ready:
      return true;
    case RingState::stuck:
      return false;
    default:
      failure_ = failureOf(state, line_.peerName);
      return *failure_;
  }
}

void MemoryReceivePort::release() {
  consumer_.release();
  line_.peerDoorbell->ring();
}

}  // namespace falcon::transport
