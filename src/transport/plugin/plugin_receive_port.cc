#include "transport/plugin/plugin_receive_port.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/sha256.h"

namespace falcon::transport {

PluginReceivePort::PluginReceivePort(PluginLine line, SendPort& control, ReceivePort& notice)
    : line_(std::move(line)),
      control_(control),
      notice_(notice),
      chunkBytes_(control.chunkBytes()),
      slots_(chunkBytes_) {}

PluginReceivePort::~PluginReceivePort() {
  if (comm_ && isRegistered_) static_cast<void>(line_.calls().deregMr(comm_, registered_));
  if (comm_) static_cast<void>(line_.calls().closeRecv(comm_));
  if (listener_) static_cast<void>(line_.calls().closeListen(listener_));
}

Result<bool> PluginReceivePort::ready() {
  while (!shown_) {
    if (line_.failure()) return *line_.failure();
    Result<bool> advanced = false;
    switch (stage_) {
      case Stage::silent:
        advanced = listen();
        break;
      case Stage::listening:
        advanced = sendHandle();
        break;
      case Stage::expecting:
        advanced = expect();
        break;
      case Stage::accepting:
        advanced = accept();
        break;
      case Stage::open:
        if (const Status posted = post(); !posted) return posted.error();
        return test();
    }
    if (!advanced || !*advanced) return advanced;
  }
  return true;
}

Result<bool> PluginReceivePort::listen() {
  const auto result = line_.calls().listen(line_.context(), line_.device(), handle_.data(), &listener_);
  if (result != net::success) {
    listener_ = nullptr;
    return line_.failed("listen", result);
  }
  if (!listener_)
    return line_.fail(log::decided(Error::system(
        "net plugin {}: listen for {} says success, but gives nothing to listen with; it is not sound: leave it out of "
        "NCCL_NET_PLUGIN",
        line_.calls().name(), line_.peerName())));
  token_ = line_.tokenOf(handle_);
  stage_ = Stage::listening;
  return true;
}

Result<bool> PluginReceivePort::sendHandle() {
  if (!handleIsSent_) {
    const auto room = control_.acquire();
    if (!room) return line_.fail(room.error());
    if (room->empty()) return false;
    std::memcpy(room->data(), handle_.data(), handle_.size());
    control_.commit(handle_.size());
    handleIsSent_ = true;
  }
  if (const auto moved = control_.progress(); !moved) return line_.fail(moved.error());
  if (!control_.flushed()) return false;
  stage_ = Stage::expecting;
  return true;
}

/// See PluginSendPort::announce().
Result<bool> PluginReceivePort::expect() {
  const auto there = notice_.ready();
  if (!there) return line_.fail(there.error());
  if (!*there) return false;
  notice_.release();
  stage_ = Stage::accepting;
  line_.startConnecting();
  return true;
}

Result<bool> PluginReceivePort::accept() {
  const net::NetCalls& calls = line_.calls();
  if (const auto result = calls.accept(listener_, &comm_); result != net::success) {
    comm_ = nullptr;
    return line_.failed("accept", result);
  }
  if (!comm_) {
    const Status patient = line_.stillConnecting();
    return patient ? Result<bool>(false) : patient.error();
  }
  if (const auto result = calls.regMr(comm_, slots_.data(), slots_.bytes(), &registered_); result != net::success)
    return line_.failed("regMr", result);
  isRegistered_ = true;
  stage_ = Stage::open;
  if (const auto result = calls.closeListen(std::exchange(listener_, nullptr)); result != net::success)
    return line_.failed("closeListen", result);
  return true;
}

Status PluginReceivePort::post() {
  const std::uint64_t wanted = std::min(std::max(announced_, received_ + 1), received_ + chunkSlots);
  while (posted_ < wanted) {
    void* request = nullptr;
    const auto result =
        line_.calls().irecv(comm_, slots_.message(posted_), pluginMessageBytes(chunkBytes_), registered_, &request);
    if (result != net::success) return line_.failed("irecv", result);
    if (!request) break;  // later
    requests_[posted_++ % chunkSlots] = request;
  }
  return {};
}

Result<bool> PluginReceivePort::test() {
  if (posted_ == received_) return false;
  int done = 0, bytes = 0;
  if (const auto result = line_.calls().test(requests_[received_ % chunkSlots], &done, &bytes); result != net::success)
    return line_.failed("test of a receive", result);
  if (!done) return false;
  const Status sound = show(bytes);
  return sound ? Result<bool>(true) : sound.error();
}

/// The oldest message has come.
Status PluginReceivePort::show(int bytes) {
  PluginFrame frame;
  std::memcpy(&frame, slots_.message(received_), sizeof frame);
  // NCCL needs sizes for flushing a GPU's memory only, and some plugins tell none (Google's Fast Socket). Without one
  // the frame counts: what stood here before has another number.
  const bool fits = bytes == 0 || (bytes > 0 && static_cast<std::size_t>(bytes) == pluginMessageBytes(frame.length));
  if (!fits || frame.magic != PluginFrame::expectedMagic || frame.length > chunkBytes_ || frame.sequence != received_ ||
      frame.announced <= received_)
    return line_.fail(
        log::decided(Error::remote("net plugin {}: {} sent nonsense where chunk {} was expected ({} bytes)",
                                   line_.calls().name(), line_.peerName(), received_, bytes)));
  if (!equalInConstantTime(frame.token, token_))
    return line_.fail(
        log::decided(Error::remote("net plugin {}: who has connected in the name of {} does not belong to this job",
                                   line_.calls().name(), line_.peerName())));
  announced_ = std::max(announced_, frame.announced);
  chunk_ = {slots_.payload(received_), frame.length};
  shown_ = true;
  return {};
}

void PluginReceivePort::release() {
  chunk_ = {};
  shown_ = false;
  ++received_;
}

WaitSource PluginReceivePort::waitSource() const {
  if (stage_ == Stage::silent || stage_ == Stage::listening) return control_.waitSource();
  return stage_ == Stage::expecting ? notice_.waitSource() : pluginWaitSource;
}

}  // namespace falcon::transport
