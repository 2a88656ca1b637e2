#include "ucx/ucx_handshake.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/system_error.h"
#include "ucx/ucx_tags.h"

namespace falcon::net {

Result<std::unique_ptr<UcxHandshake>> UcxHandshake::make(UcxEnd& end) {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()) != 0)
    return log::decided(Error::system("no sockets for a handshake: {}", reasonOf(errno)));
  return std::unique_ptr<UcxHandshake>(new UcxHandshake(end, newDescriptor(pair[0]), newDescriptor(pair[1])));
}

UcxHandshake::~UcxHandshake() {
  for (void* request : {sending_, receiving_})
    if (request) end_.abandon(request);
}

void UcxHandshake::progress() {
  end_.progress();
  if (end_.failure() != UCS_OK) return hangUp();
  const ucp_request_param_t plain{};
  if (isSent()) {
    const auto bytes = recv(ours_.get(), out_.data(), out_.size(), MSG_DONTWAIT);
    if (bytes > 0) {
      void* request =
          ucp_tag_send_nbx(end_.endpoint(), out_.data(), static_cast<std::size_t>(bytes), handshakeTag, &plain);
      if (UCS_PTR_IS_ERR(request)) return hangUp();
      sending_ = request;  // null: it is sent
    }
  }
  if (!receiving_) {
    ucp_request_param_t later{};
    later.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    void* request = ucp_tag_recv_nbx(end_.worker(), in_.data(), in_.size(), handshakeTag, wholeTag, &later);
    if (UCS_PTR_IS_ERR(request)) return hangUp();
    receiving_ = request;
  }
  ucp_tag_recv_info_t info{};
  const auto status = ucp_tag_recv_request_test(receiving_, &info);
  if (status == UCS_INPROGRESS) return;
  ucp_request_free(std::exchange(receiving_, nullptr));
  if (status != UCS_OK) return hangUp();
  static_cast<void>(send(ours_.get(), in_.data(), info.length, MSG_NOSIGNAL | MSG_DONTWAIT));
}

bool UcxHandshake::isAllSent() {
  char byte = 0;
  return isSent() && recv(ours_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

bool UcxHandshake::isSent() {
  if (sending_ && ucp_request_check_status(sending_) != UCS_INPROGRESS)
    ucp_request_free(std::exchange(sending_, nullptr));
  return !sending_;
}

}  // namespace falcon::net
