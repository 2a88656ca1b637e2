#include "ucx/ucx_dialling.h"

namespace falcon::net {
namespace {

transport::Hello helloFor(const ListenerHandle& handle) {
  transport::Hello hello;
  hello.key = handle.listener;
  hello.secret = handle.secret;
  return hello;
}

}  // namespace

UcxDialling::UcxDialling(ucp_context_h context, const ListenerHandle& handle)
    : DiallingTerm(handle), context_(context), greeting_(helloFor(handle)) {}

Status UcxDialling::begin() {
  auto end = UcxEnd::connecting(context_, handle().address);
  if (!end) return end.error();
  end_ = std::move(*end);
  auto handshake = UcxHandshake::make(*end_);
  if (!handshake) return handshake.error();
  handshake_ = std::move(*handshake);
  const Status opened = greeting_.open(handshake_->socket(), handle().address);
  return opened ? Status() : Status(log::decided(opened.error()));
}

Result<std::unique_ptr<UcxEnd>> UcxDialling::progress() {
  if (!end_)
    if (const Status begun = begin(); !begun) return begun.error();
  handshake_->progress();
  if (!isThrough_) {
    using Progress = transport::Greeting::Progress;
    const auto progress = greeting_.read(handshake_->socket());
    if (progress == Progress::failed) return unreachable(greeting_.error().message());
    if (progress == Progress::turnedAway)
      return unreachable(end_->failure() == UCS_OK ? "it hangs up" : textOf(end_->failure()));
    isThrough_ = progress == Progress::complete;
    handshake_->progress();
  }
  if (isThrough_ && handshake_->isAllSent()) {
    handshake_.reset();
    return std::move(end_);
  }
  if (!isOverdue(SystemClock::instance().now())) return std::unique_ptr<UcxEnd>();
  return log::decided(overdue());
}

Error UcxDialling::unreachable(const std::string& why) const {
  return log::decided(Error::remote("cannot connect to {} by UCX: {}", handle().address.text(), why));
}

}  // namespace falcon::net
