#include "transport/plugin/plugin_send_port.h"

#include <cstring>

#include "base/log.h"

namespace falcon::transport {

PluginSendPort::PluginSendPort(PluginLine line, ReceivePort& control, SendPort& notice,
                               std::atomic<std::uint64_t>& bytesSent)
    : line_(std::move(line)),
      control_(control),
      notice_(notice),
      bytesSent_(bytesSent),
      chunkBytes_(control.chunkBytes()),
      slots_(chunkBytes_) {}

PluginSendPort::~PluginSendPort() {
  if (!comm_) return;
  if (isRegistered_) static_cast<void>(line_.calls().deregMr(comm_, registered_));
  static_cast<void>(line_.calls().closeSend(comm_));
}

Result<std::span<std::byte>> PluginSendPort::acquire() {
  if (line_.failure()) return *line_.failure();
  if (committed_ - done_ == chunkSlots) return std::span<std::byte>();
  return std::span(slots_.payload(committed_), chunkBytes_);
}

void PluginSendPort::commit(std::size_t bytes) {
  PluginFrame frame;
  frame.length = static_cast<std::uint32_t>(bytes);
  frame.sequence = committed_;
  std::memcpy(slots_.message(committed_), &frame, sizeof frame);
  ++committed_;
  if (stage_ == Stage::open && !line_.failure()) static_cast<void>(post());  // progress() tells of a failure
}

Result<bool> PluginSendPort::progress() {
  if (line_.failure()) return *line_.failure();
  switch (stage_) {
    case Stage::invited:
      return takeHandle();
    case Stage::connecting:
      return connect();
    case Stage::open:
      break;
  }
  return move();
}

Result<bool> PluginSendPort::takeHandle() {
  const auto there = control_.ready();
  if (!there) return line_.fail(there.error());
  if (!*there) return false;
  const auto handle = control_.chunk();
  if (handle.size() != handle_.size())
    return line_.fail(
        log::decided(Error::remote("{} sent a handle of {} bytes for net plugin {}; {} were expected", line_.peerName(),
                                   handle.size(), line_.calls().name(), handle_.size())));
  std::memcpy(handle_.data(), handle.data(), handle.size());
  control_.release();
  token_ = line_.tokenOf(handle_);  // before the plugin writes into the handle, as it may
  stage_ = Stage::connecting;
  line_.startConnecting();
  return true;
}

/// Some plugins block in accept() until somebody connects (Google's Fast Socket does): two ranks that both accept first
/// would wait for ever. So nobody accepts before the other has begun to connect.
Result<bool> PluginSendPort::announce() {
  if (!noticeIsSent_) {
    const auto room = notice_.acquire();
    if (!room) return line_.fail(room.error());
    if (room->empty()) return false;
    notice_.commit(0);
    noticeIsSent_ = true;
  }
  if (const auto moved = notice_.progress(); !moved) return line_.fail(moved.error());
  isAnnounced_ = notice_.flushed();
  return isAnnounced_;
}

Result<bool> PluginSendPort::connect() {
  const net::NetCalls& calls = line_.calls();
  if (!comm_) {
    const auto result = calls.connect(line_.context(), line_.device(), handle_.data(), &comm_);
    if (result != net::success) {
      comm_ = nullptr;
      return line_.failed("connect", result);
    }
  }
  if (!isAnnounced_) {
    const auto announced = announce();
    if (!announced || !*announced) return announced;
  }
  if (!comm_) {
    const Status patient = line_.stillConnecting();
    return patient ? Result<bool>(false) : patient.error();
  }
  if (const auto result = calls.regMr(comm_, slots_.data(), slots_.bytes(), &registered_); result != net::success)
    return line_.failed("regMr", result);
  isRegistered_ = true;
  stage_ = Stage::open;
  return true;
}

Result<bool> PluginSendPort::move() {
  const auto posted = post();
  if (!posted) return posted;
  const auto done = test();
  if (!done) return done;
  return *posted || *done;
}

Result<bool> PluginSendPort::post() {
  const std::uint64_t before = posted_;
  while (posted_ != committed_) {
    std::byte* const message = slots_.message(posted_);
    PluginFrame frame;
    std::memcpy(&frame, message, sizeof frame);
    frame.announced = committed_;
    frame.token = token_;
    std::memcpy(message, &frame, sizeof frame);
    const std::size_t bytes = pluginMessageBytes(frame.length);
    void* request = nullptr;
    if (const auto result = line_.calls().isend(comm_, message, bytes, registered_, &request); result != net::success)
      return line_.failed("isend", result);
    if (!request) break;  // later
    requests_[posted_++ % chunkSlots] = request;
    bytesSent_.fetch_add(bytes, std::memory_order_relaxed);
  }
  return posted_ != before;
}

Result<bool> PluginSendPort::test() {
  const std::uint64_t before = done_;
  while (done_ != posted_) {
    int done = 0, size = 0;
    if (const auto result = line_.calls().test(requests_[done_ % chunkSlots], &done, &size); result != net::success)
      return line_.failed("test of a send", result);
    if (!done) break;
    ++done_;
  }
  return done_ != before;
}

WaitSource PluginSendPort::waitSource() const {
  if (stage_ == Stage::invited) return control_.waitSource();
  return noticeIsSent_ && !isAnnounced_ ? notice_.waitSource() : pluginWaitSource;
}

}  // namespace falcon::transport
