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

// Ticks, of a second each. How long a newcomer's place is its own, where others need it:
constexpr int silenceLimit = 5;
// And how long it may stay at all before it has proven itself.
constexpr int unprovenLimit = 60;
// How long a process without descriptors may keep a peer waiting: a moment's shortage should not end a job.
constexpr int hungerLimit = 5;
constexpr std::size_t mostNewcomers = 1024;  // besides those who are early
constexpr std::size_t mostEarly = 1024;

std::string_view hostOf(std::string_view address) {
  return address.substr(0, address.rfind(':'));
}

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
  Newcomers newcomers;
  std::map<Whom, Expectation> expectations;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    newcomers.swap(newcomers_);
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
    if (!admit(std::move(socket), SocketAddress(reinterpret_cast<sockaddr*>(&from), length).text(), false)) return;
  }
}

/// False: the doorway is full. If more are at the door the loop says so.
bool Reception::admit(FileDescriptor socket, std::string address, bool usesSpare) {
  closeInForkedChildren(socket.get());
  prepareSocket(socket.get(), Purpose::data);  // by keepalive a silent newcomer goes when its host has gone
  const int number = socket.get();
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    newcomers_[number] = {std::move(socket), std::move(address), {}, Stage::silent, ticks_, usesSpare};
    setTicking(true);
  }
  loop_->watch(number, POLLIN, [weak = weak_from_this(), number](short) {
    if (const auto self = weak.lock()) self->readFrom(number);
  });
  return !full();
}

bool Reception::full() {
  const std::lock_guard lock(mutex_);
  return newcomers_.size() - earlyOnes() >= mostNewcomers;
}

std::size_t Reception::earlyOnes() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(newcomers_, [](const auto& entry) { return entry.second.stage == Stage::early; }));
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
  if (silent == newcomers_.end() || !over(silent->second.since, silenceLimit)) return true;  // it had
  drop(silent, silent->second.stage == Stage::silent
                   ? fmt::format("it did not say who it is within {} s, and others need its place", silenceLimit)
                   : fmt::format("it did not prove itself within {} s, and others need its place", silenceLimit));
  return true;
}

Reception::Newcomers::iterator Reception::silentForTooLong() {
  auto first = newcomers_.end();
  for (auto each = newcomers_.begin(); each != newcomers_.end(); ++each)
    if (each->second.stage != Stage::early && over(each->second.since, silenceLimit) &&
        (first == newcomers_.end() || each->second.since < first->second.since))
      first = each;
  return first;
}

Reception::Newcomer Reception::take(Newcomers::iterator newcomer) {
  Newcomer taken = std::move(newcomer->second);
  loop_->unwatch(newcomer->first);
  newcomers_.erase(newcomer);
  return taken;
}

void Reception::drop(Newcomers::iterator newcomer, std::string_view reason) {
  sayDropped(newcomer->second.address, reason);
  end(take(newcomer));
}

void Reception::end(Newcomer newcomer) {
  newcomer.socket.reset();
  if (newcomer.usesSpare) spare_ = newDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

/// accept() has just failed for want of a descriptor. True once that has lasted too long.
bool Reception::hungry(int problem) {
  if (!hungrySince_) {
    hungrySince_ = ticks_;
    log::warn("a connection cannot be accepted yet: {}", reasonOf(problem));
  }
  return over(*hungrySince_, hungerLimit);
}

/// With the spare descriptor: whoever needs the connection fails and says why, instead of waiting for ever. One at a
/// time: it has to prove itself first. False: there was nobody, another thread took the descriptor, or it is in use.
bool Reception::turnAwayOne() {
  {
    const std::lock_guard lock(mutex_);
    if (!spare_) return false;
    spare_.reset();
  }
  sockaddr_storage from{};
  socklen_t length = sizeof from;
  FileDescriptor socket = newDescriptor(
      accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) {
    admit(std::move(socket), SocketAddress(reinterpret_cast<sockaddr*>(&from), length).text(), true);
  } else {
    const std::lock_guard lock(mutex_);
    spare_ = newDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  return false;  // the next one when this one has gone
}

void Reception::pauseAccepting(bool crowded) {
  const std::lock_guard lock(mutex_);
  paused_ = true;
  crowded_ = crowded;
  setTicking(true);
  loop_->unwatch(listener_.get());
}

void Reception::readFrom(int socket) {
  std::optional<Newcomer> proven;
  {
    const std::lock_guard lock(mutex_);
    const auto found = newcomers_.find(socket);
    if (found == newcomers_.end()) return;
    switch (found->second.challenge.read(socket)) {
      case Challenge::Progress::incomplete:
        return;
      case Challenge::Progress::opened:
        opened(found);
        break;
      case Challenge::Progress::stranger:
        drop(found, found->second.challenge.reason());
        break;
      case Challenge::Progress::complete:
        proven = take(found);
        break;
    }
    // Not at the next tick: 64 ranks of one process that turn to each other are 4000 newcomers.
    if (crowded_ && newcomers_.size() - earlyOnes() < mostNewcomers / 2) resume();
  }
  if (!proven) return;
  Hello hello = proven->challenge.hello();
  hello.admitted = !proven->usesSpare;
  deliver(std::move(proven->socket), proven->address, std::move(hello));
  const std::lock_guard lock(mutex_);
  end(std::move(*proven));
}

/// It has said for whom it comes.
void Reception::opened(Newcomers::iterator newcomer) {
  const Challenge& said = newcomer->second.challenge;
  const auto expected = expectations_.find({said.purpose(), said.key()});
  if (expected != expectations_.end()) return challenge(newcomer, expected->second.secret);
  if (newcomer->second.usesSpare || said.purpose() == Purpose::rendezvous) return end(take(newcomer));
  newcomer->second.stage = Stage::early;
  newcomer->second.since = ticks_;
  makeRoomForEarly();
}

void Reception::challenge(Newcomers::iterator newcomer, const Secret& secret) {
  if (const Status asked = newcomer->second.challenge.challenge(newcomer->first, secret); !asked)
    return drop(newcomer, asked.error().message());
  newcomer->second.stage = Stage::challenged;
  newcomer->second.since = ticks_;
}

// Of the host that has the most there, so that one that fills the place with connections of no use crowds out its own.
void Reception::makeRoomForEarly() {
  if (earlyOnes() <= mostEarly) return;
  std::map<std::string_view, std::size_t> counts;
  for (const auto& [socket, newcomer] : newcomers_)
    if (newcomer.stage == Stage::early) ++counts[hostOf(newcomer.address)];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  auto oldest = newcomers_.end();
  for (auto each = newcomers_.begin(); each != newcomers_.end(); ++each)
    if (each->second.stage == Stage::early && hostOf(each->second.address) == most->first &&
        (oldest == newcomers_.end() || each->second.since < oldest->second.since))
      oldest = each;
  drop(oldest, fmt::format("{} others wait already for someone to expect them", mostEarly));
}

void Reception::deliver(FileDescriptor socket, const std::string& address, Hello hello) {
  std::shared_ptr<Reactor::ConnectionHandler> handler;
  EventLoop::Token token;
  {
    const std::lock_guard lock(mutex_);
    const auto found = expectations_.find({hello.purpose, hello.key});
    if (closed_ || found == expectations_.end()) return;  // nobody expects it any more
    if (!equalInConstantTime(found->second.secret, hello.secret))
      return sayDropped(address, "it knows a secret that is out of use");
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

void Reception::challengeEarly() {
  const std::lock_guard lock(mutex_);
  for (auto each = newcomers_.begin(); each != newcomers_.end();) {
    const auto next = std::next(each);
    if (each->second.stage == Stage::early)
      if (const auto expected = expectations_.find({each->second.challenge.purpose(), each->second.challenge.key()});
          expected != expectations_.end())
        challenge(each, expected->second.secret);
    each = next;
  }
}

void Reception::expect(Purpose purpose, std::uint64_t key, const Secret& secret, Reactor::ConnectionHandler handler) {
  std::shared_ptr<Reactor::ConnectionHandler> replaced;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    Expectation& expectation = expectations_[{purpose, key}];
    replaced = std::move(expectation.handler);
    expectation = {loop_->newToken(), secret, std::make_shared<Reactor::ConnectionHandler>(std::move(handler))};
  }
  loop_->post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->challengeEarly();
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
  std::vector<int> overdue;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    for (const auto& [socket, newcomer] : newcomers_)
      if (isOverdue(newcomer)) overdue.push_back(socket);
  }
  for (const int socket : overdue) {
    readFrom(socket);  // it may have spoken while this thread had no processor
    const std::lock_guard lock(mutex_);
    const auto still = newcomers_.find(socket);
    if (still == newcomers_.end() || !isOverdue(still->second)) continue;
    drop(still,
         still->second.stage == Stage::silent  ? fmt::format("it did not say who it is within {} s", unprovenLimit)
         : still->second.stage == Stage::early ? fmt::format("nobody expected it within {} s", unprovenLimit)
                                               : fmt::format("it did not prove itself within {} s", unprovenLimit));
  }
  if (paused_ && full()) makeRoom();
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  if (paused_ && newcomers_.size() - earlyOnes() < mostNewcomers) resume();
  setTicking(paused_ || !newcomers_.empty());
}

bool Reception::isOverdue(const Newcomer& newcomer) const {
  return over(newcomer.since, newcomer.usesSpare ? hungerLimit : unprovenLimit);
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
