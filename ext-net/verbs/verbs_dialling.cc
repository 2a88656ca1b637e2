#include "verbs/verbs_dialling.h"

#include "base/system_error.h"
#include "transport/descriptor_limit.h"
#include "verbs/verbs_sender.h"

namespace falcon::net {

Status VerbsDialling::begin() {
  if (const Status room = transport::reserveDescriptors(2, "a connection"); !room) return log::decided(room.error());
  auto pair = QueuePair::make(port_, VerbsSender::sends, VerbsSender::receives);
  if (!pair) return pair.error();
  pair_ = std::move(*pair);
  dialling_.emplace(handle(), from_, pair_->facts().text());
  answer_.want(EndFacts::textBytes);
  return {};
}

Result<std::unique_ptr<Connection>> VerbsDialling::progress() {
  if (!pair_)
    if (const Status begun = begin(); !begun) return begun.error();
  if (!socket_) {
    if (const Status gone = dialling_->progress(); !gone) return gone.error();
    if (dialling_->isThrough()) socket_ = dialling_->take();
  }
  if (socket_) {
    auto made = readAnswer();
    if (!made || *made) return made;
  }
  if (!isOverdue(SystemClock::instance().now())) return std::unique_ptr<Connection>();
  return log::decided(overdue());
}

Result<std::unique_ptr<Connection>> VerbsDialling::readAnswer() {
  using Progress = transport::ExactReader::Progress;
  const std::string peer = handle().address.text();
  const auto progress = answer_.read(socket_.get());
  if (progress == Progress::incomplete) return std::unique_ptr<Connection>();
  if (progress == Progress::ended)
    return log::decided(Error::remote("cannot connect to {} by verbs: {}", peer,
                                      answer_.problem() == 0 ? "it hangs up" : reasonOf(answer_.problem())));
  const auto facts = EndFacts::read(answer_.bytes());
  if (!facts)
    return log::decided(Error::remote("cannot connect to {} by verbs: its answer is none of this release's", peer));
  if (const Status connected = pair_->connect(*facts); !connected) return connected.error();
  return VerbsSender::make(std::move(pair_), std::move(socket_), device_, peer);
}

}  // namespace falcon::net
