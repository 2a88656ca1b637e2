#include "ucx/ucx_network.h"

#include <cstdlib>

#include "base/log.h"
#include "core/meeting_listener.h"
#include "transport/interface_address.h"
#include "ucx/departures.h"
#include "ucx/ucx_loose_end.h"

namespace falcon::net {
namespace {

/// What is assumed: UCX does not say. As NCCL's own sockets.
constexpr int usualSpeed = 10'000;

}  // namespace

Status UcxNetwork::open() {
  ucp_config_t* config = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK)
    return log::decided(Error::system("UCX cannot read its settings: {}", textOf(status)));
  // So that two interfaces are used where there are. Beyond that its settings are UCX's own: that a peer is gone is
  // seen by its lifeline.
  if (!std::getenv("UCX_MAX_EAGER_LANES")) ucp_config_modify(config, "MAX_EAGER_LANES", "2");
  ucp_params_t how{};
  how.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  how.features = UCP_FEATURE_TAG;
  how.mt_workers_shared = 1;
  const auto status = ucp_init(&how, config, &context_);
  ucp_config_release(config);
  if (status == UCS_OK) return {};
  context_ = nullptr;
  return log::decided(Error::system("UCX cannot be used: {}; UCX_TLS says what it may use", textOf(status)));
}

Result<std::span<const Device>> UcxNetwork::devices() {
  const std::lock_guard lock(mutex_);
  if (!devices_.empty()) return std::span<const Device>(devices_);
  const auto address = transport::chooseInterfaceAddress();
  if (!address) return address.error();
  if (const Status opened = context_ ? Status() : open(); !opened) return opened.error();
  address_ = *address;
  Device device;
  device.name = "ucx";
  device.speed = usualSpeed;
  // Of host memory only: what a NIC has written to a GPU may be seen late there, and must be flushed before NCCL's
  // kernel reads it. UCX has nothing for that but a read of the memory, which is not tried here for want of a NIC.
  devices_.push_back(std::move(device));
  log::info("Using UCX {} at {}", ucp_get_version_string(), address_.host());
  return std::span<const Device>(devices_);
}

Result<std::unique_ptr<Listener>> UcxNetwork::listen(int, Handle handle) {
  Departures::instance().look();
  return MeetingListener::make(address_, handle, ends(false));
}

Result<std::unique_ptr<Connection>> UcxNetwork::connect(int, Handle handle) {
  Departures::instance().look();
  return meet(diallings_, handle, address_, ends(true));
}

MakeLooseEnd UcxNetwork::ends(bool sends) const {
  return [context = context_, sends] { return UcxLooseEnd::make(context, sends); };
}

}  // namespace falcon::net
