#include "core/meeting_dialling.h"

#include <sys/socket.h>

#include <cerrno>

#include "base/system_error.h"
#include "base/wire.h"
#include "transport/descriptor_limit.h"

namespace falcon::net {
namespace {

constexpr std::size_t lengthBytes = sizeof(std::uint32_t);

}  // namespace

Status MeetingDialling::begin() {
  if (const Status room = transport::reserveDescriptors(2, "a connection"); !room) return log::decided(room.error());
  auto end = make_();
  if (!end) return end.error();
  end_ = std::move(*end);
  dialling_.emplace(handle(), from_, end_->facts());
  answer_.want(lengthBytes);
  return {};
}

Result<std::unique_ptr<Connection>> MeetingDialling::progress() {
  if (!end_)
    if (const Status begun = begin(); !begun) return begun.error();
  if (!socket_) {
    if (const Status gone = dialling_->progress(); !gone) return gone.error();
    if (dialling_->isThrough()) socket_ = dialling_->take();
  }
  if (socket_ && !isAnswered_) {
    const auto answered = readAnswer();
    if (!answered) return answered.error();
    isAnswered_ = *answered;
  }
  if (isAnswered_) {
    auto made = finish();
    if (!made || *made) return made;
  }
  if (!isOverdue(SystemClock::instance().now())) return std::unique_ptr<Connection>();
  return log::decided(overdue());
}

Result<bool> MeetingDialling::readAnswer() {
  using Progress = transport::ExactReader::Progress;
  auto progress = answer_.read(socket_.get());
  if (progress == Progress::complete && answer_.bytes().size() == lengthBytes) {
    const auto length = WireReader(answer_.bytes()).get<std::uint32_t>();
    if (length > transport::maximumHelloPayload) return unreachable("its answer is none of this release's");
    answer_.want(lengthBytes + length);
    progress = answer_.read(socket_.get());
  }
  if (progress == Progress::incomplete) return false;
  if (progress == Progress::ended)
    return unreachable(answer_.problem() == 0 ? "it hangs up" : reasonOf(answer_.problem()));
  const auto facts = std::string_view(answer_.bytes()).substr(lengthBytes);
  if (const Status connected = end_->connect(facts, handle().address.text()); !connected) return connected.error();
  return true;
}

Result<std::unique_ptr<Connection>> MeetingDialling::finish() {
  const auto settled = end_->settle();
  if (!settled) return settled.error();
  if (!*settled) return std::unique_ptr<Connection>();
  const int socket = socket_.get();
  auto made = end_->begin(std::move(socket_), handle().address.text());
  if (!made) return made;
  if (send(socket, &ready, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) return unreachable(reasonOf(errno));
  return made;
}

Error MeetingDialling::unreachable(std::string_view why) const {
  return log::decided(Error::remote("cannot connect to {} by {}: {}", handle().address.text(), networkName, why));
}

Result<std::unique_ptr<Connection>> meet(DiallingBook<MeetingDialling>& book, Handle handle, const SocketAddress& from,
                                         const MakeLooseEnd& make) {
  const auto to = readHandle(handle);
  if (!to) return to.error();
  const auto dialling = book.find(*to, handle, [&] { return std::make_shared<MeetingDialling>(*to, from, make); });
  auto made = dialling->progress();
  if (!made || *made) book.forget(handle);
  return made;
}

}  // namespace falcon::net
