// One end of a connection over UCX: a worker of its own with an endpoint.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace falcon::net {

/// What UCX says of it.
std::string textOf(ucs_status_t status);

/// Used by one thread at a time. UCX makes progress only where somebody asks for it.
class UcxEnd {
 public:
  /// Error (system): UCX cannot.
  static Result<std::unique_ptr<UcxEnd>> make(ucp_context_h context);
  /// Closes at once: what is not on its way yet (see flush()) does not go any more.
  ~UcxEnd();
  UcxEnd(const UcxEnd&) = delete;
  UcxEnd& operator=(const UcxEnd&) = delete;

  /// How another worker reaches this one. Error (system): UCX does not say.
  Result<std::string> address() const;
  /// Once, with the other worker's. Error (system): UCX cannot reach it.
  Status connect(const std::string& address, const std::string& peer);

  void progress() { ucp_worker_progress(worker_); }
  ucp_worker_h worker() const { return worker_; }
  ucp_ep_h endpoint() const { return endpoint_; }
  /// UCS_OK, or what has ended the connection.
  ucs_status_t failure() const { return failure_; }

  /// Whether the network has all that was sent before this was called for the first time since it said true, or never
  /// will.
  bool flush();
  /// So that all requests end.
  void cut();
  /// Gives a request up after cut(), and waits until UCX has: for all of them together for a second at most.
  void abandon(void* request);

 private:
  UcxEnd() = default;
  /// Waits until it is over, and frees it.
  void finish(void* request);

  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  ucs_status_t failure_ = UCS_OK;
  void* flushing_ = nullptr;
  std::optional<Nanoseconds> patientUntil_;
};

}  // namespace falcon::net
