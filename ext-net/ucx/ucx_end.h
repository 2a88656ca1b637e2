// One end of a connection over UCX: a worker of its own with an endpoint.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/socket_address.h"

namespace falcon::net {

/// What UCX says of it.
std::string textOf(ucs_status_t status);

/// Used by one thread at a time. UCX makes progress only where somebody asks for it.
class UcxEnd {
 public:
  /// Errors (system): UCX cannot.
  static Result<std::unique_ptr<UcxEnd>> connecting(ucp_context_h context, const SocketAddress& to);
  /// That is connected to nobody yet, for accept().
  static Result<std::unique_ptr<UcxEnd>> idle(ucp_context_h context);
  /// Once. Takes the request, also where it fails.
  Status accept(ucp_conn_request_h request);
  /// Closes: what was sent still goes, for a second at most.
  ~UcxEnd();
  UcxEnd(const UcxEnd&) = delete;
  UcxEnd& operator=(const UcxEnd&) = delete;

  void progress() { ucp_worker_progress(worker_); }
  ucp_worker_h worker() const { return worker_; }
  ucp_ep_h endpoint() const { return endpoint_; }
  /// UCS_OK, or what has ended the connection.
  ucs_status_t failure() const { return failure_; }

  /// Gives a request up that is not over: asks UCX to, and waits until it has, for a second at most.
  void abandon(void* request);
  /// Now, and what was sent does not go any more: so that all requests end.
  void cut() { close(UCP_EP_CLOSE_FLAG_FORCE); }

 private:
  UcxEnd() = default;
  Status join(ucp_ep_params_t how, const std::string& what);
  void close(unsigned flags);

  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  ucs_status_t failure_ = UCS_OK;
};

}  // namespace falcon::net
