#include "transport/window_inbox.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/system_error.h"
#include "transport/connection_offer.h"
#include "transport/local_ports.h"

namespace falcon::transport {
namespace {

// Under the lock: who gives a window back, or asks for a signal, waits for that long.
constexpr std::size_t mostAtOnce = 256 << 10;
constexpr int mostTurns = 16;  // then other connections have theirs

}  // namespace

std::uint64_t windowKey(CommunicatorId communicator, Rank rank) {
  return inboxKey(communicator, rank);  // the purpose tells the two apart
}

WindowInbox::WindowInbox(std::shared_ptr<Reactor> reactor, CommunicatorId communicator, const Secret& secret, Rank self,
                         int ranks)
    : reactor_(std::move(reactor)),
      key_(windowKey(communicator, self)),
      ranks_(ranks),
      self_(self),
      process_(getpid()) {
  reactor_->expect(Purpose::window, key_, secret,
                   [this](FileDescriptor socket, const Hello& hello) { welcome(std::move(socket), hello); });
}

WindowInbox::~WindowInbox() {
  if (getpid() != process_) {
    // A forked child: the connections are its parent's.
    for (auto& [from, writer] : writers_) static_cast<void>(writer.socket.release());
    return;
  }
  reactor_->forget(Purpose::window, key_);
  std::map<Rank, Writer> writers;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    writers.swap(writers_);
  }
  // The sockets stay open until nobody watches them: their numbers must not become somebody else's before.
  for (const auto& [from, writer] : writers) thread_->loop().unwatch(writer.socket.get());
}

void WindowInbox::openWindow(std::uint64_t number, const void* address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  registered_ = number;
  if (bytes > 0) windows_[number] = {static_cast<std::byte*>(const_cast<void*>(address)), bytes};
  for (auto at = writers_.begin(); at != writers_.end();) {
    auto& [from, writer] = *at;
    auto done = Step::goesOn;
    if (std::exchange(writer.waits, false)) {
      watch(from, writer);
      // A message without bytes is there as a whole: of it nobody tells again.
      while (done == Step::goesOn && isWhole(writer)) done = step(from, writer);
    }
    if (done == Step::ended) {
      thread_->loop().unwatch(writer.socket.get());
      at = writers_.erase(at);
    } else {
      ++at;
    }
  }
}

void WindowInbox::closeWindow(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  windows_.erase(number);
}

std::uint64_t WindowInbox::signalsFrom(Rank from, int kind) const {
  const std::lock_guard lock(mutex_);
  const auto known = counts_.find(from);
  return known == counts_.end() ? 0 : known->second[static_cast<std::size_t>(kind)];
}

void WindowInbox::count(Rank from, std::uint32_t kind) {
  ++counts_[from][kind];
}

std::optional<WindowAnswer> WindowInbox::takeOwn(const WindowHeader& header, const std::byte* from) {
  const std::lock_guard lock(mutex_);
  auto verdict = verdictOn(header);
  if (!verdict || verdict->outcome != WindowAnswer::Outcome::done) return verdict;
  if (header.bytes > 0) std::memmove(windows_.at(header.window).address + header.offset, from, header.bytes);
  count(self_, header.kind);
  return verdict;
}

/// Nothing: the window is not registered yet.
std::optional<WindowAnswer> WindowInbox::verdictOn(const WindowHeader& header) const {
  using Outcome = WindowAnswer::Outcome;
  if (header.window == 0) return WindowAnswer{};
  if (header.window > registered_) return std::nullopt;
  const auto window = windows_.find(header.window);
  if (window == windows_.end()) return WindowAnswer{Outcome::closed};
  const std::uint64_t has = window->second.bytes;
  if (header.offset > has || header.bytes > has - header.offset) return WindowAnswer{Outcome::tooShort, has};
  return WindowAnswer{};
}

// On the reactor's thread.
void WindowInbox::welcome(FileDescriptor socket, const Hello& hello) {
  const Rank from = hello.from;
  if (from < 0 || from >= ranks_ || from == self_) {
    log::warn("a connection that claims to be from rank {} makes no sense; dropped", from);
    return;
  }
  if (!hello.admitted) {
    // The writer hears that it was closed; here it is said why.
    (void)log::decided(Error::system("no connection for what rank {} writes into windows: {}", from, reasonOf(EMFILE)));
    return;
  }
  const std::lock_guard lock(mutex_);
  if (closing_) return;
  if (writers_.contains(from)) {
    log::warn("rank {} opened a second connection for what it writes into windows; dropped", from);
    return;
  }
  if (!thread_) {
    auto thread = WindowThread::ofThisProcess();
    if (!thread) return;
    thread_ = std::move(*thread);
  }
  Writer& writer = writers_[from];
  writer.socket = std::move(socket);
  watch(from, writer);
}

void WindowInbox::watch(Rank from, const Writer& writer) {
  thread_->loop().watch(writer.socket.get(), POLLIN, [this, from](short) { onReadable(from); });
}

// On the window thread.
void WindowInbox::onReadable(Rank from) {
  const std::lock_guard lock(mutex_);
  const auto found = writers_.find(from);
  if (closing_ || found == writers_.end()) return;
  Writer& writer = found->second;
  auto done = Step::goesOn;
  // Of a message that is there nobody tells again, so it is answered in any case.
  for (int turn = 0; done == Step::goesOn && (turn < mostTurns || isWhole(writer)); ++turn) done = step(from, writer);
  if (done != Step::ended) return;
  thread_->loop().unwatch(writer.socket.get());
  writers_.erase(found);
}

bool WindowInbox::isWhole(const Writer& writer) {
  return writer.headerBytes == sizeof writer.header && writer.taken == writer.header.bytes;
}

WindowInbox::Step WindowInbox::step(Rank from, Writer& writer) {
  if (writer.headerBytes < sizeof writer.header) return takeHeader(from, writer);
  if (!writer.known && !resolve(writer)) return Step::nothingMore;
  if (writer.taken < writer.header.bytes) return takeBytes(writer);
  return answer(from, writer);
}

WindowInbox::Step WindowInbox::readInto(Writer& writer, std::span<std::byte> room, std::size_t& got) {
  // TCP drops bytes for which there is no room, and counts them (tcp(7), MSG_TRUNC).
  const int flags = MSG_DONTWAIT | (room.data() ? 0 : MSG_TRUNC);
  const auto read = recv(writer.socket.get(), room.data(), room.size(), flags);
  if (read > 0) {
    got = static_cast<std::size_t>(read);
    return Step::goesOn;
  }
  if (read < 0 && errno == EFAULT) {
    // What has come stays where it was, and is taken elsewhere.
    writer.known = WindowAnswer{WindowAnswer::Outcome::unreadable};
    got = 0;
    return Step::goesOn;
  }
  return read < 0 && (errno == EAGAIN || errno == EINTR) ? Step::nothingMore : Step::ended;
}

WindowInbox::Step WindowInbox::takeHeader(Rank from, Writer& writer) {
  auto* const bytes = reinterpret_cast<std::byte*>(&writer.header);
  std::size_t got = 0;
  const auto read = readInto(writer, {bytes + writer.headerBytes, sizeof writer.header - writer.headerBytes}, got);
  if (read != Step::goesOn) return read;
  writer.headerBytes += got;
  if (writer.headerBytes < sizeof writer.header) return Step::goesOn;
  const WindowHeader& header = writer.header;
  if (header.magic == WindowHeader::expectedMagic && header.kind < signalKinds &&
      (header.window != 0 || header.bytes == 0))
    return Step::goesOn;
  log::warn("rank {} sent a message for a window that makes no sense; its connection was closed", from);
  return Step::ended;
}

/// False: the window is not registered yet. Until it is, the connection is left alone; who dies meanwhile is noticed
/// elsewhere.
bool WindowInbox::resolve(Writer& writer) const {
  writer.known = verdictOn(writer.header);
  if (writer.known) return true;
  writer.waits = true;
  thread_->loop().unwatch(writer.socket.get());
  return false;
}

/// Null where the bytes are of no use: they have to be read all the same.
std::byte* WindowInbox::placeOf(const Writer& writer) const {
  if (writer.known->outcome != WindowAnswer::Outcome::done) return nullptr;
  const auto window = windows_.find(writer.header.window);
  return window == windows_.end() ? nullptr : window->second.address + writer.header.offset + writer.taken;
}

WindowInbox::Step WindowInbox::takeBytes(Writer& writer) {
  std::byte* const place = placeOf(writer);
  if (!place && writer.known->outcome == WindowAnswer::Outcome::done)
    writer.known = WindowAnswer{WindowAnswer::Outcome::closed};  // given back in the middle of the message
  const std::uint64_t left = writer.header.bytes - writer.taken;
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(left, mostAtOnce));
  std::size_t got = 0;
  const auto read = readInto(writer, {place, most}, got);
  writer.taken += got;
  return read;
}

WindowInbox::Step WindowInbox::answer(Rank from, Writer& writer) {
  if (writer.known->outcome == WindowAnswer::Outcome::done) {
    count(from, writer.header.kind);
    ringOwnDoorbell();
  }
  // The writer waits for it, so there is room.
  const auto sent = send(writer.socket.get(), &*writer.known, sizeof *writer.known, MSG_NOSIGNAL | MSG_DONTWAIT);
  writer.headerBytes = 0;
  writer.taken = 0;
  writer.known.reset();
  return sent == sizeof(WindowAnswer) ? Step::goesOn : Step::ended;
}

}  // namespace falcon::transport
