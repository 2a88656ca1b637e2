#include "core/meeting_listener.h"

#include <sys/socket.h>

#include <cerrno>
#include <iterator>

#include "base/parameters.h"
#include "base/system_error.h"
#include "base/wire.h"

namespace falcon::net {

Result<std::unique_ptr<Listener>> MeetingListener::make(const SocketAddress& address, Handle handle,
                                                        MakeLooseEnd make) {
  auto doorman = Doorman::make(address, handle);
  if (!doorman) return doorman.error();
  return std::unique_ptr<Listener>(std::make_unique<MeetingListener>(std::move(*doorman), std::move(make)));
}

Result<std::unique_ptr<Connection>> MeetingListener::accept() {
  const Nanoseconds now = SystemClock::instance().now();
  for (;;) {
    auto guest = doorman_->next(now);
    if (!guest) return guest.error();
    if (!*guest) break;
    if (const Status answered = answer(std::move(**guest), now); !answered) return answered.error();
  }
  for (auto one = answered_.begin(); one != answered_.end();) {
    const Step step = look(*one, now);
    if (step == Step::ready) {
      Answered its = std::move(*one);
      answered_.erase(one);
      return its.end->begin(std::move(its.socket), std::move(its.from));
    }
    one = step == Step::gone ? answered_.erase(one) : std::next(one);
  }
  return std::unique_ptr<Connection>();
}

Status MeetingListener::answer(Guest guest, Nanoseconds now) {
  auto end = make_();
  if (!end) return end.error();
  const Status connected = (*end)->connect(guest.payload, guest.from);
  // Also where they do not fit together, so that the other end can say why, too.
  const std::string text = WireWriter().put(std::string_view((*end)->facts())).take();
  // A socket that is new has room for so little.
  const bool isSent = send(guest.socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
                      static_cast<ssize_t>(text.size());
  const int number = errno;
  if (!connected) return connected;
  if (!isSent) return doorman_->dropped(guest.from, reasonOf(number), now), Status();
  answered_.push_back({std::move(*end), std::move(guest.socket), std::move(guest.from), now});
  return {};
}

MeetingListener::Step MeetingListener::look(const Answered& one, Nanoseconds now) {
  if (!one.end->settle()) return Step::gone;  // which was said
  char word = 0;
  const auto got = recv(one.socket.get(), &word, 1, MSG_DONTWAIT);
  if (got == 1 && word == ready) return Step::ready;
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    if (now - one.since <= parameters::initTimeout.value()) return Step::waits;
    return doorman_->dropped(one.from, "it has never become ready", now), Step::gone;
  }
  return doorman_->dropped(one.from, "it is gone before it was ready", now), Step::gone;
}

}  // namespace falcon::net
