#include "collectives/connected_one_sided.h"

#include "base/parameters.h"

namespace falcon::collectives {

using transport::WindowAnswer;
using transport::WindowHeader;

ConnectedOneSided::ConnectedOneSided(LocalMember& member, transport::Waiter& waiter,
                                     std::shared_ptr<transport::Reactor> reactor, std::vector<transport::Peer> peers)
    : OneSidedWay(member, waiter),
      reactor_(std::move(reactor)),
      peers_(std::move(peers)),
      inbox_(reactor_, member.network.id(), member.network.secret(), member.shape.rank, member.shape.size) {}

void ConnectedOneSided::openWindow(std::uint64_t number, const void* address, std::size_t bytes) {
  inbox_.openWindow(number, address, bytes);
  transport::ringOwnDoorbell();  // a message of this rank to itself may wait for it
}

void ConnectedOneSided::closeWindow(std::uint64_t number) {
  inbox_.closeWindow(number);
}

std::uint64_t ConnectedOneSided::signalsFrom(Rank peer, int kind) const {
  return inbox_.signalsFrom(peer, kind);
}

Status ConnectedOneSided::send(const char* function, const OneSidedMessage& message) {
  const WindowHeader header{.kind = static_cast<std::uint32_t>(message.kind),
                            .window = message.window,
                            .offset = message.offset,
                            .bytes = message.bytes};
  const auto* const from = static_cast<const std::byte*>(message.from);
  if (message.peer == member_->shape.rank) {
    std::optional<WindowAnswer> own;
    const auto isTaken = [&] { return (own = inbox_.takeOwn(header, from)).has_value(); };
    if (const Status taken = until(function, message.peer, isTaken); !taken) return taken;
    return judge(function, message, *own);
  }
  const auto connection = connectionTo(function, message.peer);
  if (!connection) return connection.error();
  (*connection)->begin(header, from);
  const auto answer = answerOf(function, message.peer, **connection);
  if (!answer) return answer.error();
  return judge(function, message, *answer);
}

Result<transport::WindowConnection*> ConnectedOneSided::connectionTo(const char* function, Rank peer) {
  if (const auto known = connections_.find(peer); known != connections_.end()) return &known->second;
  const transport::Peer& there = peers_[static_cast<std::size_t>(peer)];
  const transport::Hello hello{transport::Purpose::window,
                               transport::windowKey(member_->network.id(), peer),
                               member_->network.secret(),
                               member_->shape.rank,
                               {}};
  const auto isVain = [&] {
    if (member_->hooks.hold) member_->hooks.hold->pass();
    return !member_->isHealthy() || hasLeft(peer);
  };
  auto socket = transport::connectWithHello(reactor_->address(), there.address, hello, parameters::initTimeout.value(),
                                            transport::goneLimit, isVain);
  if (const Status healthy = member_->health(); !healthy) return healthy.error();
  if (!socket && hasLeft(peer)) return member_->fail(hasLeftError(function, peer));
  if (!socket)
    return member_->fail(Error(socket.error().code(), fmt::format("{}: rank {} cannot be reached: {}", function, peer,
                                                                  socket.error().message())));
  const Rank own = peers_[static_cast<std::size_t>(member_->shape.rank)].jobRank;
  const auto made = connections_.try_emplace(peer, std::move(*socket), fmt::format("rank {}", peer),
                                             transport::linkThrottle({own, there.jobRank}));
  return &made.first->second;
}

Result<WindowAnswer> ConnectedOneSided::answerOf(const char* function, Rank peer,
                                                 transport::WindowConnection& connection) {
  for (;;) {
    if (member_->hooks.hold) member_->hooks.hold->pass();
    if (const Status healthy = member_->health(); !healthy) return healthy.error();
    waiter_->prepare();
    const auto answered = connection.progress();
    if (!answered && hasLeft(peer)) return member_->fail(hasLeftError(function, peer));
    if (!answered) {
      const std::string why = fmt::format("{}: {}", function, answered.error().message());
      return member_->fail(log::decided(Error(answered.error().code(), why)));
    }
    if (*answered) return connection.answer();
    const transport::WaitSource source = connection.waitSource();
    waiter_->wait({&source, 1}, longestSleep);
  }
}

/// What became of it, in the sender's words.
Status ConnectedOneSided::judge(const char* function, const OneSidedMessage& message, const WindowAnswer& answer) {
  switch (answer.outcome) {
    case WindowAnswer::Outcome::done:
      return {};
    case WindowAnswer::Outcome::closed:
      return log::decided(Error::invalidUsage("{}: rank {} has given the window back, or failed to register it",
                                              function, message.peer));
    case WindowAnswer::Outcome::tooShort:
      return log::decided(
          Error::invalidArgument("{}: {} bytes at offset {} do not fit into the window of rank {}, which has {}",
                                 function, message.bytes, message.offset, message.peer, answer.windowBytes));
    case WindowAnswer::Outcome::unreadable:
      return member_->fail(log::decided(
          Error::remote("{}: the window of rank {} is no memory that can be written to", function, message.peer)));
  }
  return member_->fail(log::decided(Error::remote("{}: rank {} answers nonsense", function, message.peer)));
}

}  // namespace falcon::collectives
