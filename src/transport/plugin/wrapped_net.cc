#include "transport/plugin/wrapped_net.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"

namespace falcon::transport::net {

ResultCode WrappedNet::listen(void* context, int device, void* handle, void** listenComm) const {
  void* its = nullptr;
  const ResultCode result = its_->listen(context, device, handle, &its);
  if (result == success && its) *listenComm = new Listener{its, device};
  return result;
}

ResultCode WrappedNet::closeListen(void* listenComm) const {
  const std::unique_ptr<Listener> listener(static_cast<Listener*>(listenComm));
  return its_->closeListen(listener->its);
}

ResultCode WrappedNet::connect(void* context, int device, void* handle, void** sendComm) const {
  void* its = nullptr;
  const ResultCode result = its_->connect(context, device, handle, &its);
  *sendComm = result == success && its ? opened(its, device, true) : nullptr;
  return result;
}

ResultCode WrappedNet::accept(void* listenComm, void** recvComm) const {
  const auto& listener = *static_cast<Listener*>(listenComm);
  void* its = nullptr;
  const ResultCode result = its_->accept(listener.its, &its);
  *recvComm = result == success && its ? opened(its, listener.device, false) : nullptr;
  return result;
}

void* WrappedNet::opened(void* its, int device, bool sends) const {
  auto end = std::make_unique<End>();
  end->its = its;
  end->device = device;
  end->sends = sends;
  const std::lock_guard lock(mutex_);
  end->id = ++lastId_;
  ends_.insert(end.get());
  return end.release();
}

ResultCode WrappedNet::closed(End* end, ResultCode result) const {
  {
    const std::lock_guard lock(mutex_);
    ends_.erase(end);
  }
  delete end;
  return result;
}

ResultCode WrappedNet::closeSend(void* sendComm) const {
  auto* end = static_cast<End*>(sendComm);
  return closed(end, its_->closeSend(end->its));
}

ResultCode WrappedNet::closeRecv(void* recvComm) const {
  auto* end = static_cast<End*>(recvComm);
  return closed(end, its_->closeRecv(end->its));
}

ResultCode WrappedNet::regMr(void* comm, void* data, std::size_t size, void** mhandle) const {
  return its_->regMr(static_cast<End*>(comm)->its, data, size, mhandle);
}

ResultCode WrappedNet::deregMr(void* comm, void* mhandle) const {
  return its_->deregMr(static_cast<End*>(comm)->its, mhandle);
}

ResultCode WrappedNet::begun(End& end, void* its, std::size_t size, void** request) const {
  *request = nullptr;
  if (!its) return success;
  // Nobody has more than a connection carries (PluginSendPort, PluginReceivePort).
  Request* free = std::find_if(std::begin(end.requests), std::end(end.requests),
                               [](const Request& one) { return one.its == nullptr; });
  if (free == std::end(end.requests)) return internalError;
  *free = {&end, its, size};
  end.counter.began(size, SystemClock::instance().now());
  *request = free;
  return success;
}

ResultCode WrappedNet::isend(void* sendComm, void* data, std::size_t size, void* mhandle, void** request) const {
  auto& end = *static_cast<End*>(sendComm);
  void* its = nullptr;
  const ResultCode result = its_->isend(end.its, data, size, mhandle, &its);
  return result == success ? begun(end, its, size, request) : result;
}

ResultCode WrappedNet::irecv(void* recvComm, void* data, std::size_t size, void* mhandle, void** request) const {
  auto& end = *static_cast<End*>(recvComm);
  void* its = *request;  // a hint may be there
  const ResultCode result = its_->irecv(end.its, data, size, mhandle, &its);
  return result == success ? begun(end, its, size, request) : result;
}

ResultCode WrappedNet::test(void* request, int* done, int* size) const {
  auto& ours = *static_cast<Request*>(request);
  int moved = 0;
  const ResultCode result = its_->test(ours.its, done, &moved);
  if (result != success || !*done) return result;
  if (size) *size = moved;
  ours.end->counter.done(ours.expected, ours.end->sends ? ours.expected : static_cast<std::size_t>(std::max(moved, 0)),
                         SystemClock::instance().now());
  ours.its = nullptr;
  return success;
}

std::vector<falconNetConnection_v1> WrappedNet::connections() const {
  const std::lock_guard lock(mutex_);
  ++readings_;
  std::vector<falconNetConnection_v1> all;
  for (const End* end : ends_) {
    falconNetConnection_v1 reading{};
    reading.id = end->id;
    reading.sequence = readings_;
    reading.taken = SystemClock::instance().now().count();
    reading.device = static_cast<std::uint32_t>(end->device);
    reading.sends = end->sends;
    reading.sockets = 1;
    end->counter.read(reading);
    all.push_back(reading);
  }
  return all;
}

std::vector<falconNetDevice_v1> WrappedNet::devices() const {
  int count = 0;
  if (its_->devices(&count) != success) return {};
  std::vector<falconNetDevice_v1> all(static_cast<std::size_t>(std::max(count, 0)));
  for (int number = 0; number < count; ++number) {
    DeviceProperties properties;
    if (its_->getProperties(number, properties) != success || !properties.name) continue;
    auto& device = all[static_cast<std::size_t>(number)];
    std::strncpy(device.name, properties.name, sizeof device.name - 1);
    device.speed = properties.speed;
  }
  for (const falconNetConnection_v1& connection : connections()) {
    if (connection.device >= all.size()) continue;
    auto& device = all[connection.device];
    device.sequence = connection.sequence;
    device.taken = connection.taken;
    ++device.connections;
    (connection.sends ? device.bytesSent : device.bytesReceived) += connection.bytes;
  }
  return all;
}

}  // namespace falcon::transport::net
