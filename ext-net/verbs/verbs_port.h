// A port of a device that is open: what connections are made over.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "verbs/verbs.h"

namespace falcon::net {

class VerbsPort;

/// Memory that a port's device can reach; deregistered with it.
class VerbsMemory {
 public:
  VerbsMemory(Verbs& verbs, ibv_mr* mr, const void* data, std::size_t bytes, bool isOfDevice)
      : verbs_(verbs),
        mr_(mr),
        begin_(reinterpret_cast<std::uintptr_t>(data)),
        bytes_(bytes),
        isOfDevice_(isOfDevice) {}
  ~VerbsMemory() { verbs_.destroy(mr_); }
  VerbsMemory(const VerbsMemory&) = delete;
  VerbsMemory& operator=(const VerbsMemory&) = delete;

  std::uint32_t localKey() const { return mr_->lkey; }
  std::uint32_t remoteKey() const { return mr_->rkey; }
  /// A piece of it, for the device.
  ibv_sge part(const void* data, std::size_t bytes) const {
    return {
        .addr = reinterpret_cast<std::uintptr_t>(data), .length = static_cast<std::uint32_t>(bytes), .lkey = mr_->lkey};
  }
  /// Of a GPU and the like: what comes must be flushed.
  bool isOfDevice() const { return isOfDevice_; }
  bool holds(const void* data, std::size_t bytes) const {
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    return at >= begin_ && bytes <= bytes_ && at - begin_ <= bytes_ - bytes;
  }

 private:
  Verbs& verbs_;
  ibv_mr* const mr_;
  const std::uintptr_t begin_;
  const std::size_t bytes_;
  const bool isOfDevice_;
};

/// Thread-safe. Lives as long as all that is made over it.
class VerbsPort {
 public:
  /// Errors (system): the device cannot be opened, or the port has no address; (invalidUsage): NCCL_IB_GID_INDEX names
  /// none. Null: the port is not active, or of a kind that we cannot use (iWARP, EFA).
  static Result<std::unique_ptr<VerbsPort>> open(Verbs& verbs, const std::string& device, int port,
                                                 const Clock& clock = SystemClock::instance());
  ~VerbsPort();
  VerbsPort(const VerbsPort&) = delete;
  VerbsPort& operator=(const VerbsPort&) = delete;

  Verbs& verbs() const { return verbs_; }
  ibv_context* context() const { return context_; }
  ibv_pd* domain() const { return domain_; }
  const std::string& device() const { return device_; }
  std::uint8_t number() const { return number_; }
  /// "mlx5_0:1"
  std::string name() const;
  const ibv_device_attr& deviceAttributes() const { return deviceAttributes_; }
  const ibv_port_attr& attributes() const { return attributes_; }
  bool isEthernet() const { return attributes_.link_layer == IBV_LINK_LAYER_ETHERNET; }
  const ibv_gid_entry& gid() const { return gid_; }
  bool reachesDmaBuffers() const { return reachesDmaBuffers_; }
  const Clock& clock() const { return clock_; }

  /// Error (system): the device does not take it (too much is locked, most often).
  Result<std::unique_ptr<VerbsMemory>> registerMemory(void* data, std::size_t bytes, int access) const;
  Result<std::unique_ptr<VerbsMemory>> registerDmaBuffer(void* data, std::size_t bytes, std::uint64_t offset, int file,
                                                         int access) const;

  /// What ends a connection with these queues though none of its work fails. Errors (system): the device has failed, or
  /// its port has been down for NCCL_FALCON_DEATH_TIMEOUT; (remote): the queue pair is broken. Asks the device ten
  /// times a second at most.
  Status trouble(const ibv_qp* pair, const ibv_cq* queue);
  /// They are gone: another may come to lie where they were.
  void forget(const ibv_qp* pair, const ibv_cq* queue);

 private:
  VerbsPort(Verbs& verbs, ibv_context* context, std::string device, int number, const Clock& clock)
      : verbs_(verbs),
        context_(context),
        device_(std::move(device)),
        number_(static_cast<std::uint8_t>(number)),
        clock_(clock) {}
  Status chooseGid();
  /// With mutex_ held.
  void takeEvents(Nanoseconds now);

  Verbs& verbs_;
  ibv_context* const context_;
  const std::string device_;
  const std::uint8_t number_;
  const Clock& clock_;
  ibv_pd* domain_ = nullptr;
  ibv_device_attr deviceAttributes_{};
  ibv_port_attr attributes_{};
  ibv_gid_entry gid_{};
  bool reachesDmaBuffers_ = false;

  std::mutex mutex_;
  std::optional<Nanoseconds> lastLook_;
  std::optional<Nanoseconds> downSince_;
  bool hasFailed_ = false;
  std::set<const void*> broken_;  // queues
};

}  // namespace falcon::net
