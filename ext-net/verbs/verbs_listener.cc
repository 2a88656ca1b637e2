#include "verbs/verbs_listener.h"

#include <sys/socket.h>

#include <cerrno>
#include <iterator>

#include "base/parameters.h"
#include "base/system_error.h"
#include "verbs/verbs_receiver.h"

namespace falcon::net {

Result<std::unique_ptr<Listener>> VerbsListener::make(VerbsPort& port, int device, const SocketAddress& address,
                                                      Handle handle) {
  auto doorman = Doorman::make(address, handle);
  if (!doorman) return doorman.error();
  return std::unique_ptr<Listener>(std::make_unique<VerbsListener>(port, device, std::move(*doorman)));
}

Result<std::unique_ptr<Connection>> VerbsListener::accept() {
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
      return VerbsReceiver::make(std::move(its.pair), std::move(its.socket), device_, std::move(its.from));
    }
    one = step == Step::gone ? answered_.erase(one) : std::next(one);
  }
  return std::unique_ptr<Connection>();
}

Status VerbsListener::answer(Guest guest, Nanoseconds now) {
  const auto facts = EndFacts::read(guest.payload);
  if (!facts) return doorman_->dropped(guest.from, "its greeting is of another release", now), Status();
  auto pair = QueuePair::make(port_, VerbsReceiver::sends, VerbsReceiver::receives);
  if (!pair) return pair.error();
  if (const Status connected = (*pair)->connect(*facts); !connected) return connected;
  const std::string text = (*pair)->facts().text();
  // A socket that is new has room for so little.
  if (send(guest.socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
      static_cast<ssize_t>(text.size()))
    return doorman_->dropped(guest.from, reasonOf(errno), now), Status();
  answered_.push_back({std::move(*pair), std::move(guest.socket), std::move(guest.from), now});
  return {};
}

VerbsListener::Step VerbsListener::look(const Answered& one, Nanoseconds now) {
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
