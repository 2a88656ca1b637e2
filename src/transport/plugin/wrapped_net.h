// Times the requests of somebody else's plugin and tells of its connections, without its knowing
// (NCCL_FALCON_NET_WRAP=1).
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "falcon_net_state.h"
#include "transport/plugin/net_calls.h"
#include "transport/plugin/traffic_counter.h"

namespace falcon::transport::net {

/// What NetCalls promises of threads, this does too; the state may be read by any thread.
class WrappedNet final : public NetCalls {
 public:
  explicit WrappedNet(std::unique_ptr<NetCalls> its) : its_(std::move(its)) {}

  int version() const override { return its_->version(); }
  const char* name() const override { return its_->name(); }
  std::vector<const char*> missing() const override { return its_->missing(); }
  bool hasContexts() const override { return its_->hasContexts(); }
  ResultCode init(std::uint64_t communicator, void** context) const override {
    return its_->init(communicator, context);
  }
  ResultCode devices(int* count) const override { return its_->devices(count); }
  ResultCode getProperties(int device, DeviceProperties& properties) const override {
    return its_->getProperties(device, properties);
  }
  ResultCode listen(void* context, int device, void* handle, void** listenComm) const override;
  ResultCode connect(void* context, int device, void* handle, void** sendComm) const override;
  ResultCode accept(void* listenComm, void** recvComm) const override;
  ResultCode regMr(void* comm, void* data, std::size_t size, void** mhandle) const override;
  ResultCode deregMr(void* comm, void* mhandle) const override;
  ResultCode isend(void* sendComm, void* data, std::size_t size, void* mhandle, void** request) const override;
  ResultCode irecv(void* recvComm, void* data, std::size_t size, void* mhandle, void** request) const override;
  ResultCode test(void* request, int* done, int* size) const override;
  ResultCode closeSend(void* sendComm) const override;
  ResultCode closeRecv(void* recvComm) const override;
  ResultCode closeListen(void* listenComm) const override;
  ResultCode finalize(void* context) const override { return its_->finalize(context); }

  /// What is known of its connections: bytes, messages, what is in flight, how long sends waited. No score: that wants
  /// a round trip.
  std::vector<falconNetConnection_v1> connections() const;
  std::vector<falconNetDevice_v1> devices() const;

 private:
  struct Listener {
    void* its = nullptr;
    int device = 0;
  };
  struct End;
  struct Request {
    End* end = nullptr;
    void* its = nullptr;
    std::size_t expected = 0;
  };
  struct End {
    std::uint64_t id = 0;
    void* its = nullptr;
    int device = 0;
    bool sends = false;
    TrafficCounter counter{};
    Request requests[mostRequests]{};
  };

  void* opened(void* its, int device, bool sends) const;
  ResultCode closed(End* end, ResultCode result) const;
  ResultCode begun(End& end, void* its, std::size_t size, void** request) const;

  const std::unique_ptr<NetCalls> its_;
  mutable std::mutex mutex_;
  mutable std::set<End*> ends_;  // that are open
  mutable std::uint64_t lastId_ = 0;
  mutable std::uint64_t readings_ = 0;
};

}  // namespace falcon::transport::net
