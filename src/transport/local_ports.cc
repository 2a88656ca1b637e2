#include "transport/local_ports.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "base/log.h"
#include "base/parameters.h"
#include "base/system_error.h"
#include "transport/chunk_size.h"
#include "transport/connecting_port.h"
#include "transport/connection_offer.h"
#include "transport/dialling.h"
#include "transport/known_peers.h"
#include "transport/memory_port.h"
#include "transport/striped_port.h"

namespace falcon::transport {
namespace {

void reply(int to, OfferAnswer answer) {
  // A fresh connection takes one byte at once; if the peer has gone, the next read says so.
  [[maybe_unused]] const auto sent = send(to, &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool hungUp(int socket) {
  char byte;
  return recv(socket, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) == 0;
}

class LocalPorts final : public Ports {
 public:
  LocalPorts(std::shared_ptr<Reactor> reactor, CommunicatorId communicator, const Secret& secret, Rank self,
             std::vector<Peer> peers);
  ~LocalPorts() override;

  Result<SendPort*> openSend(const PortKey& key) override;
  Result<ReceivePort*> openReceive(const PortKey& key) override;
  Medium mediumTo(Rank peer) const override { return peers_.mediumTo(peer); }
  void left(Rank peer) override;
  std::uint64_t bytesSentTo(Rank peer) const override { return peers_.bytesSentTo(peer); }

 private:
  using SendLine = ConnectingSendPort;
  using ReceiveLine = ConnectingReceivePort;

  Status checkKey(const PortKey& key) const;
  std::size_t chunkBytesOf(const PortKey& key) const {
    return chunkBytesFor(key.lane, bufferBytes_, static_cast<int>(peers_.size()));
  }

  // All below: with mutex_ held.
  ReceiveLine& receiveLine(const PortKey& key);
  Status connectToSelf(const PortKey& key, SendLine& line);
  Status startConnecting(const PortKey& key, SendLine& line);
  Dialling::Call callFor(const PortKey& key, const SendLine& line, std::size_t stream);
  void attachSockets(const PortKey& key, SendLine& line, std::vector<SharedSocket> sockets);
  void attachSockets(const PortKey& key, ReceiveLine& line, std::vector<SharedSocket> sockets);
  /// Whoever sends to that peer or receives from it, now or later, uses this socket.
  void shareSocket(const PortKey& key, const SharedSocket& socket);
  Error leftError(Rank peer) const { return Error::remote("{} has left the communicator", peers_.name(peer)); }
  void dropDial(SendLine& line);
  bool usesMine(const PortKey& key) const;
  bool mayShareASocket(const PortKey& key) const;
  void failLine(SendLine& line, const Error& error);

  // On the reactor's thread.
  void onProven(const PortKey& key, std::size_t stream, SharedSocket socket);
  void onFailed(const PortKey& key, const Error& error);
  void onAnswer(const PortKey& key, std::size_t stream);
  void onOffer(FileDescriptor socket, const Hello& hello);
  void accept(const PortKey& key, const ConnectionOffer& offer, FileDescriptor socket, bool admitted);

  const std::shared_ptr<Reactor> reactor_;
  const CommunicatorId communicator_;
  const Secret secret_;
  const Rank self_;
  KnownPeers peers_;
  const int streams_ = static_cast<int>(
      parameters::socketThreads.value() *
      std::min<std::int64_t>(parameters::socketsPerThread.value(), mostStreams / parameters::socketThreads.value()));
  const std::size_t bufferBytes_ = static_cast<std::size_t>(parameters::bufferSize.value());
  const pid_t process_ = getpid();

  std::mutex mutex_;
  bool closing_ = false;
  std::map<PortKey, std::unique_ptr<SendLine>> sends_;
  std::map<PortKey, std::unique_ptr<ReceiveLine>> receives_;
  std::map<PortKey, SharedSocket> shared_;  // for both ways
  std::set<Rank> left_;
  std::unique_ptr<Dialling> dialling_ = std::make_unique<Dialling>(reactor_);
};

LocalPorts::LocalPorts(std::shared_ptr<Reactor> reactor, CommunicatorId communicator, const Secret& secret, Rank self,
                       std::vector<Peer> peers)
    : reactor_(std::move(reactor)),
      communicator_(communicator),
      secret_(secret),
      self_(self),
      peers_(self, std::move(peers)) {
  reactor_->expect(Purpose::data, inboxKey(communicator_, self_), secret_,
                   [this](FileDescriptor socket, const Hello& hello) { onOffer(std::move(socket), hello); });
}

LocalPorts::~LocalPorts() {
  if (getpid() != process_) {
    // A forked child: the connections are its parent's. To close them would tell the peers that the parent has left.
    for (auto& [key, line] : sends_) static_cast<void>(line.release());
    for (auto& [key, line] : receives_) static_cast<void>(line.release());
    static_cast<void>(dialling_.release());
    return;
  }
  reactor_->forget(Purpose::data, inboxKey(communicator_, self_));
  dialling_.reset();
  // The sockets stay open until nobody watches them: their numbers must not become somebody else's before.
  std::vector<SharedSocket> waiting;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (auto& [key, line] : sends_) std::ranges::move(std::exchange(line->sockets, {}), std::back_inserter(waiting));
  }
  for (const SharedSocket& socket : waiting)
    if (socket) reactor_->unwatch(socket->get());
}

Status LocalPorts::checkKey(const PortKey& key) const {
  if (!peers_.has(key.peer) || key.channel < 0 || key.channel >= channelLimit || key.lane > Lane::probe)
    return log::decided(Error::internal("no port for rank {}, channel {}: the communicator has {} ranks", key.peer,
                                        key.channel, peers_.size()));
  return {};
}

Result<SendPort*> LocalPorts::openSend(const PortKey& key) {
  if (auto valid = checkKey(key); !valid) return valid.error();
  const std::lock_guard lock(mutex_);
  auto& known = sends_[key];
  if (known) return known.get();
  auto line = std::make_unique<SendLine>(chunkBytesOf(key));
  if (const auto both = shared_.find(key); both != shared_.end()) {
    attachSockets(key, *line, {both->second});
  } else if (left_.contains(key.peer)) {
    line->connection.fail(log::decided(leftError(key.peer)));
  } else if (auto started = key.peer == self_ ? connectToSelf(key, *line) : startConnecting(key, *line); !started) {
    sends_.erase(key);
    return started.error();
  }
  known = std::move(line);
  return known.get();
}

Result<ReceivePort*> LocalPorts::openReceive(const PortKey& key) {
  if (auto valid = checkKey(key); !valid) return valid.error();
  const std::lock_guard lock(mutex_);
  return &receiveLine(key);
}

LocalPorts::ReceiveLine& LocalPorts::receiveLine(const PortKey& key) {
  auto& line = receives_[key];
  if (line) return *line;
  line = std::make_unique<ReceiveLine>(chunkBytesOf(key));
  if (const auto both = shared_.find(key); both != shared_.end())
    attachSockets(key, *line, {both->second});
  else if (left_.contains(key.peer))
    line->connection.fail(log::decided(leftError(key.peer)));
  return *line;
}

// It waits for the answer to an offer before it sends, so nothing that it has sent can be without a connection here.
void LocalPorts::left(Rank peer) {
  const std::lock_guard lock(mutex_);
  if (closing_ || !left_.insert(peer).second) return;
  for (auto& [key, line] : receives_)
    if (key.peer == peer && !line->connection.decided()) line->connection.fail(log::decided(leftError(peer)));
  for (auto& [key, line] : sends_)
    if (key.peer == peer && !line->connection.decided()) failLine(*line, leftError(peer));
  peers_.ownDoorbell()->ring();
}

Status LocalPorts::connectToSelf(const PortKey& key, SendLine& line) {
  const std::size_t chunkBytes = chunkBytesOf(key);
  auto segment = SharedSegment::createPrivate(ChunkRing::bytesFor(chunkBytes));
  if (!segment) return log::decided(segment.error());
  const MemoryLine memory{std::make_shared<SharedSegment>(std::move(*segment)), peers_.ownDoorbell(),
                          peers_.name(self_)};
  line.connection.attach(std::make_unique<MemorySendPort>(memory, chunkBytes, peers_.bytesSentTo(self_)));
  receiveLine(key).connection.attach(std::make_unique<MemoryReceivePort>(memory, chunkBytes));
  peers_.ownDoorbell()->ring();
  return {};
}

Status LocalPorts::startConnecting(const PortKey& key, SendLine& line) {
  line.offered = peers_.segmentFor(key.peer, chunkBytesOf(key));
  line.sockets.resize(line.offered ? 1 : static_cast<std::size_t>(streams_));
  const auto theirs = receives_.find(key);
  const bool theySendElsewhere = theirs != receives_.end() && theirs->second->connection.decided();
  line.isForBothWays = line.sockets.size() == 1 && !line.offered && !theySendElsewhere;
  std::vector<Dialling::Call> calls;
  for (std::size_t stream = 0; stream < line.sockets.size(); ++stream) calls.push_back(callFor(key, line, stream));
  return dialling_->begin(std::move(calls));
}

Dialling::Call LocalPorts::callFor(const PortKey& key, const SendLine& line, std::size_t stream) {
  const ConnectionOffer offer{key.channel,
                              key.lane,
                              chunkBytesOf(key),
                              line.offered ? line.offered->name() : "",
                              line.offered ? peers_.ownDoorbell()->name() : "",
                              static_cast<int>(stream),
                              static_cast<int>(line.sockets.size()),
                              line.isForBothWays};
  return {peers_[key.peer].address,
          {Purpose::data, inboxKey(communicator_, key.peer), secret_, self_, offer.encode()},
          peers_.name(key.peer),
          [this, key, stream](SharedSocket socket) { onProven(key, stream, std::move(socket)); },
          [this, key](const Error& error) { onFailed(key, error); }};
}

void LocalPorts::attachSockets(const PortKey& key, SendLine& line, std::vector<SharedSocket> sockets) {
  line.connection.attach(makeSocketSendPort(std::move(sockets), peers_.name(key.peer), chunkBytesOf(key),
                                            linkThrottle({peers_[self_].jobRank, peers_[key.peer].jobRank}),
                                            peers_.bytesSentTo(key.peer)));
}

void LocalPorts::attachSockets(const PortKey& key, ReceiveLine& line, std::vector<SharedSocket> sockets) {
  line.connection.attach(makeSocketReceivePort(std::move(sockets), peers_.name(key.peer), chunkBytesOf(key)));
}

// Who has dialled meanwhile goes on at once, and is told by the peer that its own socket is of no use.
void LocalPorts::shareSocket(const PortKey& key, const SharedSocket& socket) {
  shared_[key] = socket;
  if (const auto line = sends_.find(key); line != sends_.end() && !line->second->connection.decided())
    attachSockets(key, *line->second, {socket});
  if (const auto line = receives_.find(key); line != receives_.end() && !line->second->connection.decided())
    attachSockets(key, *line->second, {socket});
}

void LocalPorts::dropDial(SendLine& line) {
  for (const SharedSocket& socket : line.sockets)
    if (socket) reactor_->unwatch(socket->get());
  line.sockets.clear();
  line.offered.reset();
}

void LocalPorts::failLine(SendLine& line, const Error& error) {
  dropDial(line);
  line.isForBothWays = false;
  if (line.connection.decided()) return;  // it sends over the peer's socket
  line.connection.fail(log::decided(error));
  peers_.ownDoorbell()->ring();
}

void LocalPorts::onProven(const PortKey& key, std::size_t stream, SharedSocket socket) {
  const std::lock_guard lock(mutex_);
  const auto line = sends_.find(key);
  if (line == sends_.end() || line->second->sockets.size() <= stream) return;  // it has failed over another socket
  reactor_->watch(socket->get(), POLLIN, [this, key, stream](short) { onAnswer(key, stream); });
  line->second->sockets[stream] = std::move(socket);
}

void LocalPorts::onFailed(const PortKey& key, const Error& error) {
  const std::lock_guard lock(mutex_);
  if (const auto line = sends_.find(key); line != sends_.end() && !line->second->sockets.empty())
    failLine(*line->second, error);
}

void LocalPorts::onAnswer(const PortKey& key, std::size_t stream) {
  const std::lock_guard lock(mutex_);
  const auto known = sends_.find(key);
  if (closing_ || known == sends_.end() || known->second->sockets.empty()) return;
  SendLine& line = *known->second;
  const int socket = line.sockets[stream]->get();
  OfferAnswer answer{};
  const auto got = recv(socket, &answer, sizeof answer, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0)
    return failLine(line, Error::remote("{} closed a new connection: {}", peers_.name(key.peer),
                                        got == 0 ? "it left or never opened this communicator" : strerror(errno)));
  if (answer == OfferAnswer::chunkSize)
    return failLine(line, Error::invalidUsage("{} has another NCCL_BUFFSIZE; set it alike on all ranks (here {})",
                                              peers_.name(key.peer), bufferBytes_));
  if (answer == OfferAnswer::noDescriptor)
    return failLine(line, Error::remote("{} has no file descriptor left for a connection (raise ulimit -n there)",
                                        peers_.name(key.peer)));
  if (answer == OfferAnswer::mine && line.isForBothWays) return dropDial(line);
  const bool memory = answer == OfferAnswer::sharedMemory && line.offered;
  const bool bothWays = answer == OfferAnswer::bothWays && line.isForBothWays;
  if ((!memory && !bothWays && answer != OfferAnswer::socket) || line.connection.decided())
    return failLine(line, Error::remote("{} answered nonsense to a new connection", peers_.name(key.peer)));
  reactor_->unwatch(socket);
  if (++line.answered < line.sockets.size()) return;
  if (memory) {
    line.offered->dropName();
    line.connection.attach(std::make_unique<MemorySendPort>(
        MemoryLine{std::move(line.offered), peers_.doorbellOf(key.peer), peers_.name(key.peer)}, chunkBytesOf(key),
        peers_.bytesSentTo(key.peer)));
    line.sockets.clear();
  } else {
    if (line.offered) peers_.stopSharingWith(key.peer, "it cannot open it");
    line.offered.reset();
    line.isForBothWays = bothWays;
    const auto sockets = std::exchange(line.sockets, {});
    if (bothWays)
      shareSocket(key, sockets[0]);
    else
      attachSockets(key, line, sockets);
  }
  peers_.ownDoorbell()->ring();
}

void LocalPorts::onOffer(FileDescriptor socket, const Hello& hello) {
  auto offer = ConnectionOffer::decode(hello.payload);
  const PortKey key{hello.from, offer ? offer->channel : 0, offer ? offer->lane : Lane::ring};
  if (!offer || !peers_.has(hello.from) || hello.from == self_) {
    log::warn("a connection that claims to be from rank {} makes no sense; dropped", hello.from);
    return;
  }
  const std::lock_guard lock(mutex_);
  if (offer->bothWays && usesMine(key)) return reply(socket.get(), OfferAnswer::mine);
  if (receiveLine(key).connection.decided()) {
    log::warn("{} opened channel {} a second time; dropped", peers_.name(key.peer), key.channel);
    return;
  }
  accept(key, *offer, std::move(socket), hello.admitted);
  peers_.ownDoorbell()->ring();
}

void LocalPorts::accept(const PortKey& key, const ConnectionOffer& offer, FileDescriptor socket, bool admitted) {
  auto& connection = receiveLine(key).connection;
  const std::size_t chunkBytes = chunkBytesOf(key);
  if (!admitted) {
    connection.fail(log::decided(Error::system("no connection from {}: {}", peers_.name(key.peer), reasonOf(EMFILE))));
    return reply(socket.get(), OfferAnswer::noDescriptor);
  }
  if (offer.chunkBytes != chunkBytes) {
    connection.fail(log::decided(
        Error::invalidUsage("{} has another NCCL_BUFFSIZE ({}); set it alike on all ranks (here {})",
                            peers_.name(key.peer), offer.chunkBytes * chunkSlots, chunkBytes * chunkSlots)));
    return reply(socket.get(), OfferAnswer::chunkSize);
  }
  if (!offer.segment.empty()) {
    auto doorbell = mediumTo(key.peer) == Medium::sharedMemory ? peers_.doorbellOf(key.peer) : nullptr;
    auto segment = SharedSegment::open(offer.segment, ChunkRing::bytesFor(chunkBytes));
    if (doorbell && segment) {
      connection.attach(std::make_unique<MemoryReceivePort>(
          MemoryLine{std::make_shared<SharedSegment>(std::move(*segment)), std::move(doorbell), peers_.name(key.peer)},
          chunkBytes));
      return reply(socket.get(), OfferAnswer::sharedMemory);
    }
    if (!segment && hungUp(socket.get())) {
      connection.fail(Error::remote("{} left while it connected", peers_.name(key.peer)));
      return;
    }
    if (!segment) peers_.stopSharingWith(key.peer, segment.error().message());
  }
  auto& arrived = receiveLine(key).arrived;
  arrived.resize(static_cast<std::size_t>(offer.streams));
  arrived[static_cast<std::size_t>(offer.stream)] = std::make_shared<FileDescriptor>(std::move(socket));
  if (!std::ranges::all_of(arrived, [](const SharedSocket& each) { return each != nullptr; })) return;
  const bool bothWays = offer.bothWays && mayShareASocket(key);
  // The answer goes first: once attached, the sockets are the engine's.
  for (const SharedSocket& each : arrived) reply(each->get(), bothWays ? OfferAnswer::bothWays : OfferAnswer::socket);
  const auto sockets = std::exchange(arrived, {});
  if (bothWays)
    shareSocket(key, sockets[0]);
  else
    attachSockets(key, receiveLine(key), sockets);
}

// Where both have dialled, both know whose socket it is: the lower rank's.
bool LocalPorts::usesMine(const PortKey& key) const {
  const auto own = sends_.find(key);
  return own != sends_.end() && own->second->isForBothWays && self_ < key.peer;
}

bool LocalPorts::mayShareASocket(const PortKey& key) const {
  const auto own = sends_.find(key);
  return mediumTo(key.peer) == Medium::socket && (own == sends_.end() || own->second->isForBothWays);
}

}  // namespace

Result<std::unique_ptr<Ports>> makeLocalPorts(std::shared_ptr<Reactor> reactor, CommunicatorId communicator,
                                              const Secret& secret, Rank self, std::vector<Peer> peers) {
  if (self < 0 || static_cast<std::size_t>(self) >= peers.size())
    return log::decided(Error::internal("rank {} of {} cannot have ports", self, peers.size()));
  return std::unique_ptr<Ports>(
      std::make_unique<LocalPorts>(std::move(reactor), communicator, secret, self, std::move(peers)));
}

}  // namespace falcon::transport
