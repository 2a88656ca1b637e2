#include "ucx/ucx_connection.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/system_error.h"
#include "ucx/departures.h"

namespace falcon::net {
namespace {

constexpr ucp_tag_t wholeTag = ~ucp_tag_t{0};
constexpr Nanoseconds watchInterval = 100ms;
/// What was sent before the peer's process ended may be on its way yet.
constexpr Nanoseconds endingLimit = 1s;

}  // namespace

Result<bool> UcxRequest::test(std::size_t& bytes) {
  return connection->test(*this, bytes);
}

UcxConnection::UcxConnection(std::unique_ptr<UcxEnd> end, Farewell farewell, bool sends, std::uint64_t firstTag,
                             std::string peerName)
    : end_(std::move(end)),
      farewell_(std::move(farewell)),
      sends_(sends),
      firstTag_(firstTag),
      peerName_(std::move(peerName)),
      record_({.device = 0, .sends = sends, .sockets = 1, .peer = peerName_}, [](falconNetConnection_v1&) {}) {}

UcxConnection::~UcxConnection() {
  const bool hasRequests = std::any_of(requests_.begin(), requests_.end(), [](const auto& one) { return one.request; });
  if (!hasRequests && !failure_ && end_->failure() == UCS_OK) {
    Departures::instance().add(std::move(end_), std::move(farewell_), added_);
    return;
  }
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
  const ucp_tag_t tag = firstTag_ + added_;
  void* request = sends_ ? ucp_tag_send_nbx(end_->endpoint(), data, bytes, tag, &how)
                         : ucp_tag_recv_nbx(end_->worker(), data, bytes, tag, wholeTag, &how);
  if (UCS_PTR_IS_ERR(request)) return lost(textOf(UCS_PTR_STATUS(request)));
  slot = {};
  slot.connection = this;
  slot.request = request;
  slot.number = added_;
  slot.room = slot.size = bytes;
  slot.isUsed = true;
  slot.isDone = !request;
  ++added_;
  const Nanoseconds now = SystemClock::instance().now();
  record_.counter().began(bytes, now);
  if (!request) record_.counter().done(bytes, bytes, now);
  return &slot;
}

Result<bool> UcxConnection::test(UcxRequest& request, std::size_t& bytes) {
  if (!request.isDone) {
    if (failure_) return *failure_;
    end_->progress();
    if (const Status looked = look(request); !looked) return looked.error();
    if (!request.isDone) return false;
  }
  bytes = request.size;
  request.isUsed = false;
  return true;
}

Status UcxConnection::look(UcxRequest& request) {
  ucp_tag_recv_info_t info{};
  info.length = request.size;
  const auto status =
      sends_ ? ucp_request_check_status(request.request) : ucp_tag_recv_request_test(request.request, &info);
  if (status == UCS_INPROGRESS) return watch(request);
  ucp_request_free(std::exchange(request.request, nullptr));
  if (status == UCS_ERR_MESSAGE_TRUNCATED)
    return fail(log::decided(Error::invalidUsage("{} sent a message of more than the {} bytes that were expected",
                                                 peerName_, request.room)));
  if (status != UCS_OK) return lost(textOf(status));
  request.isDone = true;
  request.size = info.length;
  lastDone_ = SystemClock::instance().now();
  record_.counter().done(request.room, request.size, lastDone_);
  return {};
}

Status UcxConnection::watch(const UcxRequest& request) {
  if (end_->failure() != UCS_OK) return lost(textOf(end_->failure()));
  const Nanoseconds now = SystemClock::instance().now();
  if (now - lastWatch_ < watchInterval) return {};
  lastWatch_ = now;
  Departures::instance().look();
  const auto [done, problem] = farewell_.look();
  if (done && request.number >= *done) return lost("it has closed its end");
  if (!problem) return {};
  if (*problem != 0) return lost(reasonOf(*problem));
  if (!hungUpSince_) hungUpSince_ = now;
  // Who has closed in order has left all messages that it knows of, of which the network may have many.
  const Nanoseconds since = done ? std::max(*hungUpSince_, lastDone_) : *hungUpSince_;
  return now - since < endingLimit ? Status() : Status(lost("it has hung up"));
}

Error UcxConnection::lost(std::string_view why) {
  if (failure_) return *failure_;
  return fail(log::decided(
      Error::remote("the connection to {} is lost while {}: {}", peerName_, sends_ ? "sending" : "receiving", why)));
}

Error UcxConnection::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
  return *failure_;
}

}  // namespace falcon::net
