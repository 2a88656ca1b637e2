#include "ucx/ucx_dialling.h"

#include "base/log.h"
#include "base/parameters.h"

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
    : context_(context),
      handle_(handle),
      since_(SystemClock::instance().now()),
      limit_(parameters::initTimeout.value()),
      greeting_(helloFor(handle)) {}

bool UcxDialling::isAbout(const ListenerHandle& handle) const {
  return handle.listener == handle_.listener && handle.secret == handle_.secret;
}

Status UcxDialling::begin() {
  auto end = UcxEnd::connecting(context_, handle_.address);
  if (!end) return end.error();
  end_ = std::move(*end);
  auto handshake = UcxHandshake::make(*end_);
  if (!handshake) return handshake.error();
  handshake_ = std::move(*handshake);
  const Status opened = greeting_.open(handshake_->socket(), handle_.address);
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
  return unreachable(fmt::format("it has not let us in for {:.0f} s ({}): is the rank there still alive?",
                                 seconds(limit_), parameters::initTimeout.name()));
}

Error UcxDialling::unreachable(const std::string& why) const {
  return log::decided(Error::remote("cannot connect to {} by UCX: {}", handle_.address.text(), why));
}

}  // namespace falcon::net
