#include "ucx/ucx_connection.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "ucx/ucx_tags.h"

namespace falcon::net {

Result<bool> UcxRequest::test(std::size_t& bytes) {
  return connection->test(*this, bytes);
}

UcxConnection::UcxConnection(std::unique_ptr<UcxEnd> end, bool sends, std::string peerName)
    : end_(std::move(end)),
      sends_(sends),
      peerName_(std::move(peerName)),
      record_({.device = 0, .sends = sends, .sockets = 1, .peer = peerName_}, [](falconNetConnection_v1&) {}) {}

UcxConnection::~UcxConnection() {
  const bool hasRequests = std::any_of(requests_.begin(), requests_.end(), [](const auto& one) { return one.request; });
  if (!hasRequests) return;
  end_->cut();
  for (UcxRequest& request : requests_)
    if (request.request) end_->abandon(request.request);
}

Result<void*> UcxConnection::registerMemory(void*, std::size_t, int kind) {
  if (kind == transport::net::hostMemory) return nullptr;
  return log::decided(Error::internal("memory of kind {} is out of UCX's reach here: the properties say so", kind));
}

Result<Request*> UcxConnection::start(void* data, std::size_t bytes, void*) {
  if (failure_) return *failure_;
  UcxRequest& slot = requests_[added_ % requests_.size()];
  if (slot.isUsed) return nullptr;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  how.memory_type = UCS_MEMORY_TYPE_HOST;
  if (!sends_) how.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;  // else it would not say how long the message is
  void* request = sends_ ? ucp_tag_send_nbx(end_->endpoint(), data, bytes, added_, &how)
                         : ucp_tag_recv_nbx(end_->worker(), data, bytes, added_, wholeTag, &how);
  if (UCS_PTR_IS_ERR(request)) return lost(UCS_PTR_STATUS(request));
  slot = {};
  slot.connection = this;
  slot.request = request;
  slot.room = slot.size = bytes;
  slot.isUsed = true;
  slot.isDone = !request;
  ++added_;
  record_.counter().began(bytes, SystemClock::instance().now());
  if (!request) record_.counter().done(bytes, bytes, SystemClock::instance().now());
  return &slot;
}

Result<bool> UcxConnection::test(UcxRequest& request, std::size_t& bytes) {
  if (!request.isDone) {
    if (!request.request) return *failure_;
    end_->progress();
    ucp_tag_recv_info_t info{};
    info.length = request.size;
    const auto status =
        sends_ ? ucp_request_check_status(request.request) : ucp_tag_recv_request_test(request.request, &info);
    if (status == UCS_INPROGRESS) {
      if (failure_) return *failure_;
      if (end_->failure() == UCS_OK) return false;
      return lost(end_->failure());
    }
    ucp_request_free(std::exchange(request.request, nullptr));
    if (status == UCS_ERR_MESSAGE_TRUNCATED)
      return fail(log::decided(Error::invalidUsage("{} sent a message of more than the {} bytes that were expected",
                                                   peerName_, request.room)));
    if (status != UCS_OK) return lost(status);
    request.isDone = true;
    request.size = info.length;
    record_.counter().done(request.room, request.size, SystemClock::instance().now());
  }
  bytes = request.size;
  request.isUsed = false;
  return true;
}

Error UcxConnection::lost(ucs_status_t status) {
  if (failure_) return *failure_;
  return fail(log::decided(Error::remote("the connection to {} is lost while {}: {}", peerName_,
                                         sends_ ? "sending" : "receiving", textOf(status))));
}

Error UcxConnection::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
  return *failure_;
}

}  // namespace falcon::net
