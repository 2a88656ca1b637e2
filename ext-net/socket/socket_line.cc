#include "socket/socket_line.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/parameters.h"
#include "base/system_error.h"
#include "socket/tcp_sampler.h"
#include "transport/tcp_state.h"

namespace falcon::net {
namespace {

constexpr Nanoseconds lookInterval = 500ms;
// Of a closed window, in a row. One may be lost, or asked so soon after another that the peer's kernel does not answer.
constexpr std::uint32_t unansweredProbes = 3;

// Keepalive probes come once a second, or four in the limit (transport::prepareSocket).
constexpr Nanoseconds mostUnheard = 3500ms;

/// Not where both ends are on one host.
bool sendsKeepalives(int socket) {
  int kept = 0;
  socklen_t length = sizeof kept;
  return ::getsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &kept, &length) == 0 && kept != 0;
}

std::vector<int> numbersOf(const std::vector<FileDescriptor>& sockets) {
  std::vector<int> numbers;
  for (const FileDescriptor& socket : sockets) numbers.push_back(socket.get());
  return numbers;
}

}  // namespace

Result<bool> SocketRequest::test(std::size_t& bytes) {
  return connection->test(*this, bytes);
}

SocketConnection::SocketConnection(int device, Direction direction, std::vector<FileDescriptor> sockets,
                                   std::string peerName, std::unique_ptr<Mover> mover)
    : sockets_(std::move(sockets)),
      peerName_(std::move(peerName)),
      mover_(std::move(mover)),
      record_({.device = device,
               .sends = direction == Direction::send,
               .sockets = static_cast<int>(sockets_.size()),
               .peer = peerName_},
              TcpSampler(numbersOf(sockets_))),
      direction_(direction),
      silentSince_(sockets_.size()),
      heard_(sockets_.size()),
      isKept_(sendsKeepalives(sockets_.front().get())) {}

SocketConnection::~SocketConnection() = default;

Result<void*> SocketConnection::registerMemory(void*, std::size_t, int kind) {
  if (kind == transport::net::hostMemory) return nullptr;
  return log::decided(Error::internal("memory of kind {} cannot be sent by TCP: the properties say so", kind));
}

Result<Request*> SocketConnection::start(void* data, std::size_t bytes, void*) {
  if (failure_) return *failure_;
  SocketRequest& slot = request(added_);
  if (slot.isUsed) return nullptr;
  slot = {};
  slot.connection = this;
  slot.data = static_cast<std::byte*>(data);
  slot.room = slot.size = bytes;
  slot.isUsed = true;
  ++added_;
  record_.counter().began(bytes, SystemClock::instance().now());
  added();
  // What fails now is told by test(), where NCCL looks for it.
  if (direction_ == Direction::send) static_cast<void>(progress());
  return &slot;
}

Result<bool> SocketConnection::test(SocketRequest& request, std::size_t& bytes) {
  if (!request.isDone) {
    if (const Status moved = progress(); !moved) return moved.error();
    if (!request.isDone) return false;
  }
  bytes = request.size;
  request.isUsed = false;
  return true;
}

Status SocketConnection::progress() {
  if (failure_) return *failure_;
  const std::uint64_t before = firstOpen_;
  if (const Status moved = move(); !moved) return moved;
  if (firstOpen_ != before || firstOpen_ == added_) return {};
  const Nanoseconds now = SystemClock::instance().now();
  if (now - lastLook_ < lookInterval) return {};
  lastLook_ = now;
  return direction_ == Direction::send ? lookForSilence(now) : Status();
}

void SocketConnection::done(SocketRequest& request) {
  request.isDone = true;
  record_.counter().done(request.room, request.size, SystemClock::instance().now());
  while (firstOpen_ != added_ && this->request(firstOpen_).isDone) ++firstOpen_;
}

Status SocketConnection::lookForSilence(Nanoseconds now) {
  const Nanoseconds limit = parameters::deathTimeout.value();
  // Nobody looked meanwhile: what came, and when, is not known.
  const bool wasAway = now - std::exchange(lastHeard_, now) > 3 * lookInterval;
  for (std::size_t place = 0; place < sockets_.size(); ++place) {
    const auto state = transport::tcpState(sockets_[place].get());
    // Its kernel sends keepalive probes, also while its program reads nothing: they acknowledge nothing, but they come.
    Heard& heard = heard_[place];
    if (!state || wasAway || state->segmentsIn == 0 || state->segmentsIn != heard.segments || state->inFlight > 0)
      heard = {state ? state->segmentsIn : 0, now};
    auto& since = silentSince_[place];
    // A receiver that does not read acknowledges all the same; its kernel does.
    const bool isSilent = state && state->inFlight > 0 && state->retries > 0;
    if (!isSilent || (since && state->sinceAcknowledged < now - *since)) since.reset();
    if (isSilent && !since) since = now;
    Nanoseconds silence = since ? now - *since : Nanoseconds(0);
    // With its window closed nothing is in flight, but our kernel asks for it, more and more seldom.
    if (state && state->probes >= unansweredProbes) silence = std::max(silence, state->sinceAcknowledged);
    if (const Nanoseconds unheard = now - heard.at; isKept_ && unheard > mostUnheard)
      silence = std::max(silence, unheard);
    if (silence > Nanoseconds(0) && silence >= limit - lookInterval)
      return fail(log::decided(Error::remote("the host of {} has answered nothing for {:.1f} s: taken for dead ({})",
                                             peerName_, seconds(silence), parameters::deathTimeout.name())));
  }
  return {};
}

Error SocketConnection::failed(int number, std::string_view doing) {
  return fail(log::decided(Error::remote("the connection to {} is lost while {}: {}", peerName_, doing,
                                         number == 0 ? "it has hung up" : reasonOf(number))));
}

Error SocketConnection::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
  return *failure_;
}

}  // namespace falcon::net
