#include "ucx/ucx_end.h"

#include <utility>

#include "base/log.h"
#include "transport/descriptor_limit.h"

namespace falcon::net {
namespace {

/// For what UCX does at once, so it is met only where UCX is wrong.
constexpr Nanoseconds cutLimit = 1s;
/// Of a worker: a listening socket and an epoll for each interface, events, segments of memory.
constexpr std::size_t workerDescriptors = 32;

void onError(void* failure, ucp_ep_h, ucs_status_t status) {
  *static_cast<ucs_status_t*>(failure) = status;
}

}  // namespace

std::string textOf(ucs_status_t status) {
  return ucs_status_string(status);
}

Result<std::unique_ptr<UcxEnd>> UcxEnd::make(ucp_context_h context) {
  if (const Status room = transport::reserveDescriptors(workerDescriptors, "an end over UCX"); !room)
    return log::decided(room.error());
  std::unique_ptr<UcxEnd> end(new UcxEnd);
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // NCCL may go on with it on another thread
  if (const auto status = ucp_worker_create(context, &worker, &end->worker_); status != UCS_OK)
    return log::decided(Error::system("UCX makes no worker: {}", textOf(status)));
  return end;
}

Result<std::string> UcxEnd::address() const {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  if (const auto status = ucp_worker_get_address(worker_, &address, &length); status != UCS_OK)
    return log::decided(Error::system("UCX does not say how a worker is reached: {}", textOf(status)));
  std::string bytes(reinterpret_cast<const char*>(address), length);
  ucp_worker_release_address(worker_, address);
  return bytes;
}

Status UcxEnd::connect(const std::string& address, const std::string& peer) {
  ucp_ep_params_t how{};
  how.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  how.address = reinterpret_cast<const ucp_address_t*>(address.data());
  how.err_mode = UCP_ERR_HANDLING_MODE_PEER;  // else requests would never end where the peer is gone
  how.err_handler.cb = onError;
  how.err_handler.arg = &failure_;
  if (const auto status = ucp_ep_create(worker_, &how, &endpoint_); status != UCS_OK)
    return log::decided(Error::system("UCX finds no way to {}: {}; UCX_TLS and UCX_NET_DEVICES say what it may use",
                                      peer, textOf(status)));
  return {};
}

UcxEnd::~UcxEnd() {
  cut();
  if (flushing_) finish(flushing_);
  if (worker_) ucp_worker_destroy(worker_);
}

bool UcxEnd::flush() {
  if (!flushing_) {
    const ucp_request_param_t plain{};
    void* request = ucp_ep_flush_nbx(endpoint_, &plain);
    if (!UCS_PTR_IS_PTR(request)) return true;
    flushing_ = request;
  }
  if (ucp_request_check_status(flushing_) == UCS_INPROGRESS) return false;
  ucp_request_free(std::exchange(flushing_, nullptr));
  return true;
}

void UcxEnd::cut() {
  if (!endpoint_) return;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* request = ucp_ep_close_nbx(std::exchange(endpoint_, nullptr), &how);
  if (UCS_PTR_IS_PTR(request)) finish(request);
}

void UcxEnd::abandon(void* request) {
  ucp_request_cancel(worker_, request);
  finish(request);
}

void UcxEnd::finish(void* request) {
  const Clock& clock = SystemClock::instance();
  if (!patientUntil_) patientUntil_ = clock.now() + cutLimit;
  while (ucp_request_check_status(request) == UCS_INPROGRESS && clock.now() < *patientUntil_) progress();
  ucp_request_free(request);
}

}  // namespace falcon::net
