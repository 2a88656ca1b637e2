#include "ucx/ucx_network.h"

#include <cstdlib>

#include "base/log.h"
#include "transport/interface_address.h"
#include "ucx/ucx_connection.h"
#include "ucx/ucx_listener.h"

namespace falcon::net {
namespace {

/// What is assumed: UCX does not say. As NCCL's own sockets.
constexpr int usualSpeed = 10'000;

}  // namespace

Status UcxNetwork::open() {
  ucp_config_t* config = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK)
    return log::decided(Error::system("UCX cannot read its settings: {}", textOf(status)));
  // A peer's death is to be known within 5 s; who sets this otherwise wants it so.
  // Over TCP an idle end learns of it by the kernel's keepalive.
  for (const auto& [name, value] :
       {std::pair{"KEEPALIVE_INTERVAL", "1s"}, {"TCP_KEEPIDLE", "1s"}, {"TCP_KEEPINTVL", "1s"}, {"TCP_KEEPCNT", "3"}})
    if (!std::getenv((std::string("UCX_") + name).c_str())) ucp_config_modify(config, name, value);
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
  return UcxListener::make(context_, address_, handle);
}

Result<std::unique_ptr<Connection>> UcxNetwork::connect(int, Handle handle) {
  const auto from = readHandle(handle);
  if (!from) return from.error();
  const auto dialling = diallings_.find(*from, handle, [&] { return std::make_shared<UcxDialling>(context_, *from); });
  auto end = dialling->progress();
  if (end && !*end) return std::unique_ptr<Connection>();
  diallings_.forget(handle);
  if (!end) return end.error();
  return std::unique_ptr<Connection>(std::make_unique<UcxConnection>(std::move(*end), true, from->address.text()));
}

}  // namespace falcon::net
