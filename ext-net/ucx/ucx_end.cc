#include "ucx/ucx_end.h"

#include <utility>

#include "base/log.h"

namespace falcon::net {
namespace {

constexpr Nanoseconds patience = 1s;

/// Asks `isOver` and makes progress, as long as there is patience.
template <class IsOver>
bool waitFor(ucp_worker_h worker, const IsOver& isOver) {
  const Nanoseconds until = SystemClock::instance().now() + patience;
  while (!isOver()) {
    if (SystemClock::instance().now() > until) return false;
    ucp_worker_progress(worker);
  }
  return true;
}

void onError(void* end, ucp_ep_h, ucs_status_t status) {
  *static_cast<ucs_status_t*>(end) = status;
}

}  // namespace

std::string textOf(ucs_status_t status) {
  return ucs_status_string(status);
}

Result<std::unique_ptr<UcxEnd>> UcxEnd::idle(ucp_context_h context) {
  std::unique_ptr<UcxEnd> end(new UcxEnd);
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // NCCL may go on with it on another thread
  if (const auto status = ucp_worker_create(context, &worker, &end->worker_); status != UCS_OK)
    return log::decided(Error::system("UCX makes no worker: {}", textOf(status)));
  return end;
}

Status UcxEnd::join(ucp_ep_params_t how, const std::string& what) {
  how.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  how.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  how.err_handler.cb = onError;
  how.err_handler.arg = &failure_;
  if (const auto status = ucp_ep_create(worker_, &how, &endpoint_); status != UCS_OK)
    return log::decided(Error::system("UCX cannot {}: {}", what, textOf(status)));
  return {};
}

Result<std::unique_ptr<UcxEnd>> UcxEnd::connecting(ucp_context_h context, const SocketAddress& to) {
  auto end = idle(context);
  if (!end) return end;
  ucp_ep_params_t how{};
  how.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  how.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  how.sockaddr.addr = to.get();
  how.sockaddr.addrlen = to.length();
  if (const Status joined = (*end)->join(how, "connect to " + to.text()); !joined) return joined.error();
  return end;
}

Status UcxEnd::accept(ucp_conn_request_h request) {
  ucp_ep_params_t how{};
  how.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  how.conn_request = request;
  return join(how, "let a sender in");
}

UcxEnd::~UcxEnd() {
  if (endpoint_) close(failure_ == UCS_OK ? 0 : UCP_EP_CLOSE_FLAG_FORCE);
  if (worker_) ucp_worker_destroy(worker_);
}

void UcxEnd::close(unsigned flags) {
  if (!endpoint_) return;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = flags;
  void* request = ucp_ep_close_nbx(std::exchange(endpoint_, nullptr), &how);
  if (!UCS_PTR_IS_PTR(request)) return;
  waitFor(worker_, [&] { return ucp_request_check_status(request) != UCS_INPROGRESS; });
  ucp_request_free(request);
}

void UcxEnd::abandon(void* request) {
  ucp_request_cancel(worker_, request);
  waitFor(worker_, [&] { return ucp_request_check_status(request) != UCS_INPROGRESS; });
  ucp_request_free(request);
}

}  // namespace falcon::net
