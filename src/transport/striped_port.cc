#include "transport/striped_port.h"

#include <algorithm>

namespace falcon::transport {
namespace {

class StripedSendPort final : public SendPort {
 public:
  explicit StripedSendPort(std::vector<std::unique_ptr<SocketSendPort>> streams) : streams_(std::move(streams)) {}

  std::size_t chunkBytes() const override { return streams_[0]->chunkBytes(); }
  Result<std::span<std::byte>> acquire() override { return streams_[next_]->acquire(); }
  void commit(std::size_t bytes) override {
    streams_[next_]->commit(bytes);
    next_ = (next_ + 1) % streams_.size();
  }
  Result<bool> progress() override {
    bool moved = false;
    for (const auto& stream : streams_) {
      auto its = stream->progress();
      if (!its) return its.error();
      moved |= *its;
    }
    return moved;
  }
  bool flushed() const override {
    return std::ranges::all_of(streams_, [](const auto& stream) { return stream->flushed(); });
  }
  // The receiver takes chunks in order: what it needs first is the oldest that has not left, so that one is waited for.
  WaitSource waitSource() const override {
    const SocketSendPort* awaited = streams_[next_].get();
    std::uint64_t oldest = ~std::uint64_t{0};
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      const std::uint64_t number = streams_[i]->framesSent() * streams_.size() + i;
      if (streams_[i]->flushed() || number >= oldest) continue;
      oldest = number;
      awaited = streams_[i].get();
    }
    return awaited->waitSource();
  }
  std::optional<Nanoseconds> underWay() const override {
    std::optional<Nanoseconds> longest;
    for (const auto& stream : streams_)
      if (const auto its = stream->underWay()) longest = std::max(longest.value_or(0ns), *its);
    return longest;
  }

 private:
  const std::vector<std::unique_ptr<SocketSendPort>> streams_;
  std::size_t next_ = 0;
};

class StripedReceivePort final : public ReceivePort {
 public:
  explicit StripedReceivePort(std::vector<std::unique_ptr<SocketReceivePort>> streams) : streams_(std::move(streams)) {}

  std::size_t chunkBytes() const override { return streams_[0]->chunkBytes(); }
  Result<bool> ready() override { return streams_[next_]->ready(); }
  std::span<const std::byte> chunk() const override { return streams_[next_]->chunk(); }
  void release() override {
    streams_[next_]->release();
    next_ = (next_ + 1) % streams_.size();
  }
  WaitSource waitSource() const override { return streams_[next_]->waitSource(); }

 private:
  const std::vector<std::unique_ptr<SocketReceivePort>> streams_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<SendPort> makeSocketSendPort(std::vector<SharedSocket> sockets, const std::string& peerName,
                                             std::size_t chunkBytes, const std::shared_ptr<LinkThrottle>& throttle,
                                             std::atomic<std::uint64_t>& bytesSent) {
  std::vector<std::unique_ptr<SocketSendPort>> streams;
  for (SharedSocket& socket : sockets)
    streams.push_back(std::make_unique<SocketSendPort>(std::move(socket), peerName, chunkBytes, throttle, bytesSent));
  if (streams.size() == 1) return std::move(streams[0]);
  return std::make_unique<StripedSendPort>(std::move(streams));
}

std::unique_ptr<ReceivePort> makeSocketReceivePort(std::vector<SharedSocket> sockets, const std::string& peerName,
                                                   std::size_t chunkBytes) {
  std::vector<std::unique_ptr<SocketReceivePort>> streams;
  for (SharedSocket& socket : sockets)
    streams.push_back(std::make_unique<SocketReceivePort>(std::move(socket), peerName, chunkBytes));
  if (streams.size() == 1) return std::move(streams[0]);
  return std::make_unique<StripedReceivePort>(std::move(streams));
}

}  // namespace falcon::transport
