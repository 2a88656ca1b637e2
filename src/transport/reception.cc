#include "transport/reception.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/socket_address.h"
#include "base/system_error.h"
#include "transport/fork_guard.h"
#include "transport/socket_options.h"

namespace falcon::transport {
namespace {

// Ticks, of a second each. How long a newcomer's place is its own before it has said who it is:
constexpr int silenceLimit = 5;
constexpr int earlyLimit = 60;
// How long a process without descriptors may keep a peer waiting: a moment's shortage should not end a job.
constexpr int hungerLimit = 5;
constexpr std::size_t mostNewcomers = 1024;
constexpr std::size_t mostEarly = 4096;

}  // namespace

Reception::Reception(std::shared_ptr<EventLoop> loop, FileDescriptor listener)
    : loop_(std::move(loop)),
      listener_(std::move(listener)),
      timer_(newDescriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK))),
      spare_(newDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC))) {}

Status Reception::complete() const {
  if (timer_ && spare_) return {};
  return Error::system("the network thread cannot be set up: {}", reasonOf(errno));
}

void Reception::open() {
  loop_->watch(timer_.get(), POLLIN, [weak = weak_from_this()](short) {
    const auto self = weak.lock();
    if (!self) return;
    // However many have passed meanwhile: this thread has slept through all but one.
    std::uint64_t passed;
    if (::read(self->timer_.get(), &passed, sizeof passed) == sizeof passed) self->tick();
  });
  listenAgain();
}

void Reception::listenAgain() {
  loop_->watch(listener_.get(), POLLIN, [weak = weak_from_this()](short) {
    if (const auto self = weak.lock()) self->acceptAll();
  });
}

void Reception::close() {
  std::map<int, Newcomer> newcomers;
  std::list<Early> early;
  std::map<Whom, Expectation> expectations;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    newcomers.swap(newcomers_);
    early.swap(early_);
    expectations.swap(expectations_);
  }
  loop_->unwatch(listener_.get());
  loop_->unwatch(timer_.get());
  for (const auto& [socket, newcomer] : newcomers) loop_->unwatch(socket);
}

/// Somebody is at the door.
void Reception::acceptAll() {
  if (full() && !makeRoom()) return pauseAccepting(true);
  while (true) {
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    FileDescriptor socket = newDescriptor(
        accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      const int problem = errno;
      if (problem == EINTR || problem == ECONNABORTED) continue;
      if (problem == EAGAIN || problem == EWOULDBLOCK) return hungrySince_.reset();
      if (lacksDescriptors(problem) && (makeRoom() || (hungry(problem) && turnAwayOne()))) continue;
      return pauseAccepting(false);  // polling on would burn a core
    }
    hungrySince_.reset();
    if (!admit(std::move(socket), SocketAddress(reinterpret_cast<sockaddr*>(&from), length).text())) return;
  }
}

/// False: the doorway is full. If more are at the door the loop says so.
bool Reception::admit(FileDescriptor socket, std::string address) {
  closeInForkedChildren(socket.get());
  prepareSocket(socket.get(), Purpose::data);  // by keepalive a silent newcomer goes when its host has gone
  const int number = socket.get();
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    newcomers_[number] = {std::move(socket), std::move(address), {}, ticks_};
    setTicking(true);
  }
  loop_->watch(number, POLLIN, [weak = weak_from_this(), number](short) {
    if (const auto self = weak.lock()) self->readFrom(number);
  });
  return !full();
}

bool Reception::full() {
  const std::lock_guard lock(mutex_);
  return newcomers_.size() >= mostNewcomers;
}

/// Of all who have been silent for too long the one that came first gives its place to another. False: there is none.
bool Reception::makeRoom() {
  int socket;
  {
    const std::lock_guard lock(mutex_);
    const auto silent = silentForTooLong();
    if (silent == newcomers_.end()) return false;
    socket = silent->first;
  }
  readFrom(socket);  // it may have spoken while this thread had no processor
  const std::lock_guard lock(mutex_);
  const auto silent = newcomers_.find(socket);
  if (silent == newcomers_.end()) return true;
  sayDropped(silent->second.address,
             fmt::format("it did not say who it is within {} s, and others need its place", silenceLimit));
  loop_->unwatch(socket);
  newcomers_.erase(silent);
  return true;
}

std::map<int, Reception::Newcomer>::iterator Reception::silentForTooLong() {
  const auto first = std::ranges::min_element(newcomers_, {}, [](const auto& entry) { return entry.second.since; });
  return first != newcomers_.end() && over(first->second.since, silenceLimit) ? first : newcomers_.end();
}

/// accept() has just failed for want of a descriptor. True once that has lasted too long.
bool Reception::hungry(int problem) {
  if (!hungrySince_) {
    hungrySince_ = ticks_;
    log::warn("a connection cannot be accepted yet: {}", reasonOf(problem));
  }
  return over(*hungrySince_, hungerLimit);
}

/// With the spare descriptor: whoever needs the connection fails and says why, instead of waiting for ever. False:
/// there was nobody, or another thread took the descriptor.
bool Reception::turnAwayOne() {
  spare_.reset();
  bool came = false;
  {
    FileDescriptor socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    came = static_cast<bool>(socket);
    HelloReader reader;
    if (came && reader.read(socket.get()) == HelloReader::Progress::complete) {
      Hello hello = reader.hello();
      hello.admitted = false;
      deliver(std::move(socket), "a peer", std::move(hello));
    }
  }
  spare_ = newDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return came;
}

void Reception::pauseAccepting(bool crowded) {
  const std::lock_guard lock(mutex_);
  paused_ = true;
  crowded_ = crowded;
  setTicking(true);
  loop_->unwatch(listener_.get());
}

void Reception::readFrom(int socket) {
  Newcomer newcomer;
  {
    const std::lock_guard lock(mutex_);
    const auto found = newcomers_.find(socket);
    if (found == newcomers_.end()) return;
    const auto progress = found->second.reader.read(socket);
    if (progress == HelloReader::Progress::incomplete) return;
    newcomer = std::move(found->second);
    newcomers_.erase(found);
    loop_->unwatch(socket);
    // Not at the next tick: 64 ranks of one process that turn to each other are 4000 newcomers.
    if (crowded_ && newcomers_.size() < mostNewcomers / 2) resume();
    if (progress == HelloReader::Progress::stranger) {
      sayDropped(newcomer.address, newcomer.reader.reason());
      return;
    }
  }
  deliver(std::move(newcomer.socket), std::move(newcomer.address), newcomer.reader.hello());
}

void Reception::deliver(FileDescriptor socket, std::string address, Hello hello) {
  std::shared_ptr<Reactor::ConnectionHandler> handler;
  EventLoop::Token token;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    const auto found = expectations_.find({hello.purpose, hello.key});
    if (found == expectations_.end() && (!hello.admitted || hello.purpose == Purpose::rendezvous)) return;
    if (found == expectations_.end()) return keep({std::move(socket), std::move(address), std::move(hello), ticks_});
    if (!equalSecrets(found->second.secret, hello.secret)) {
      sayDropped(address, "it does not know the secret of this job");
      const std::string& refusal = found->second.refusal;
      // A fresh connection takes so few bytes at once; who does not read them is a stranger indeed.
      if (!refusal.empty()) send(socket.get(), refusal.data(), refusal.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      return;
    }
    handler = found->second.handler;
    token = found->second.token;
    loop_->entering(token);  // under our lock: forget() either finds it running or prevents it
  }
  prepareSocket(socket.get(), hello.purpose);
  try {
    (*handler)(std::move(socket), hello);
  } catch (const std::exception& problem) {
    log::notice("a new connection could not be taken over: {}", problem.what());
  }
  handler.reset();
  loop_->left(token);
}

void Reception::keep(Early early) {
  if (early_.size() >= mostEarly) {
    sayDropped(early.address, fmt::format("{} others wait already for someone to expect them", early_.size()));
    return;
  }
  early_.push_back(std::move(early));
  setTicking(true);
}

void Reception::deliverEarly() {
  std::list<Early> wanted;
  {
    const std::lock_guard lock(mutex_);
    for (auto early = early_.begin(); early != early_.end();) {
      const auto next = std::next(early);
      if (expectations_.contains({early->hello.purpose, early->hello.key})) wanted.splice(wanted.end(), early_, early);
      early = next;
    }
  }
  for (Early& early : wanted) deliver(std::move(early.socket), std::move(early.address), std::move(early.hello));
}

void Reception::expect(Purpose purpose, std::uint64_t key, const Secret& secret, Reactor::ConnectionHandler handler,
                       std::string refusal) {
  std::shared_ptr<Reactor::ConnectionHandler> replaced;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    Expectation& expectation = expectations_[{purpose, key}];
    replaced = std::move(expectation.handler);
    expectation = {loop_->newToken(), secret, std::make_shared<Reactor::ConnectionHandler>(std::move(handler)),
                   std::move(refusal)};
  }
  loop_->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->deliverEarly();
  });
}

void Reception::forget(Purpose purpose, std::uint64_t key) {
  Expectation dropped;
  {
    const std::lock_guard lock(mutex_);
    const auto found = expectations_.find({purpose, key});
    if (found == expectations_.end()) return;
    dropped = std::move(found->second);
    expectations_.erase(found);
  }
  loop_->waitUntilLeft(dropped.token);
}

void Reception::resume() {
  paused_ = crowded_ = false;
  listenAgain();
}

void Reception::tick() {
  ++ticks_;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    std::erase_if(early_, [&](const Early& early) {
      if (!over(early.since, earlyLimit)) return false;
      sayDropped(early.address, fmt::format("nobody expected it within {} s", earlyLimit));
      return true;
    });
  }
  if (paused_ && full()) makeRoom();
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  if (paused_ && newcomers_.size() < mostNewcomers) resume();
  setTicking(anybodyAges());
}

// Who is silent for too long already does not get any older: nobody need wake up for it.
bool Reception::anybodyAges() const {
  return paused_ || !early_.empty() ||
         std::ranges::any_of(newcomers_, [&](const auto& entry) { return !over(entry.second.since, silenceLimit); });
}

void Reception::sayDropped(const std::string& address, std::string_view reason) {
  const auto held = dropLog_.pass(SystemClock::instance().now());
  if (!held) return;
  const std::string more = *held == 0 ? "" : fmt::format(" ({} more like it were not logged)", *held);
  log::warn("a connection from {} was dropped: {}{}", address, reason, more);
}

void Reception::setTicking(bool wanted) {
  if (wanted == ticking_) return;
  ticking_ = wanted;
  itimerspec second{};
  if (wanted) second.it_interval.tv_sec = second.it_value.tv_sec = 1;
  timerfd_settime(timer_.get(), 0, &second, nullptr);
}

}  // namespace falcon::transport
