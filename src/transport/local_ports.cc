#include "transport/local_ports.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>

#include "base/log.h"
#include "base/parameters.h"
#include "base/system_error.h"
#include "transport/alarm.h"
#include "transport/chunk_size.h"
#include "transport/connect.h"
#include "transport/connecting_port.h"
#include "transport/connection_offer.h"
#include "transport/memory_port.h"
#include "transport/striped_port.h"

namespace falcon::transport {
namespace {

// A peer where too many wait to be expected turns newcomers away: they come again, for so long.
constexpr Nanoseconds redialPause = 50ms;
constexpr Nanoseconds dialLimit = 60s;

/// What one has of a peer, connection or not.
struct PeerState {
  std::atomic<std::uint64_t> bytesSent{0};
  std::atomic<bool> sharesMemory{false};
  std::shared_ptr<Doorbell> doorbell;  // once mapped
};

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
  Medium mediumTo(Rank peer) const override;
  std::uint64_t bytesSentTo(Rank peer) const override {
    return states_.at(static_cast<std::size_t>(peer)).bytesSent.load(std::memory_order_relaxed);
  }

 private:
  using SendLine = ConnectingSendPort;
  using ReceiveLine = ConnectingReceivePort;

  Status checkKey(const PortKey& key) const;
  std::string nameOf(Rank peer) const { return describe(peer, infoOf(peer)); }
  PeerState& stateOf(Rank peer) { return states_[static_cast<std::size_t>(peer)]; }
  const Peer& infoOf(Rank peer) const { return peers_[static_cast<std::size_t>(peer)]; }
  std::size_t chunkBytesOf(const PortKey& key) const {
    return chunkBytesFor(key.lane, bufferBytes_, static_cast<int>(peers_.size()));
  }

  // All below: with mutex_ held.
  ReceiveLine& receiveLine(const PortKey& key);
  Status connectToSelf(const PortKey& key, SendLine& line);
  Status startConnecting(const PortKey& key, SendLine& line);
  void greetOnceConnected(const PortKey& key, SendLine& line, std::size_t stream);
  /// Null where it cannot be had; then the two go on by sockets.
  std::shared_ptr<SharedSegment> segmentFor(Rank peer, std::size_t chunkBytes);
  std::shared_ptr<Doorbell> doorbellOf(Rank peer);
  void stopSharingWith(Rank peer, std::string_view reason);
  void attachSockets(const PortKey& key, SendLine& line, std::vector<SharedSocket> sockets);
  void attachSockets(const PortKey& key, ReceiveLine& line, std::vector<SharedSocket> sockets);
  /// Whoever sends to that peer or receives from it, now or later, uses this socket.
  void shareSocket(const PortKey& key, const SharedSocket& socket);
  void dropDial(SendLine& line);
  bool usesMine(const PortKey& key) const;
  bool mayShareASocket(const PortKey& key) const;
  void failLine(SendLine& line, const Error& error);

  // On the reactor's thread.
  void onConnected(const PortKey& key, SendLine& line, std::size_t stream, const std::shared_ptr<Greeting>& greeting);
  void onChallenge(const PortKey& key, SendLine& line, std::size_t stream, Greeting& greeting);
  void redial();
  void onAnswer(const PortKey& key, SendLine& line, std::size_t stream);
  void onOffer(FileDescriptor socket, const Hello& hello);
  void accept(const PortKey& key, const ConnectionOffer& offer, FileDescriptor socket, bool admitted);

  const std::shared_ptr<Reactor> reactor_;
  const CommunicatorId communicator_;
  const Secret secret_;
  const Rank self_;
  const std::vector<Peer> peers_;
  const int streams_ = static_cast<int>(
      parameters::socketThreads.value() *
      std::min<std::int64_t>(parameters::socketsPerThread.value(), mostStreams / parameters::socketThreads.value()));
  const std::size_t bufferBytes_ = static_cast<std::size_t>(parameters::bufferSize.value());
  const pid_t process_ = getpid();
  const std::shared_ptr<Doorbell> ownDoorbell_{&processDoorbell(), [](Doorbell*) {}};  // lives as long as the process

  std::mutex mutex_;
  bool closing_ = false;
  std::deque<PeerState> states_;
  std::map<PortKey, std::unique_ptr<SendLine>> sends_;
  std::map<PortKey, std::unique_ptr<ReceiveLine>> receives_;
  std::map<PortKey, SharedSocket> shared_;  // for both ways
  std::vector<std::pair<PortKey, std::size_t>> redials_;
  std::unique_ptr<Alarm> redialAlarm_;
};

LocalPorts::LocalPorts(std::shared_ptr<Reactor> reactor, CommunicatorId communicator, const Secret& secret, Rank self,
                       std::vector<Peer> peers)
    : reactor_(std::move(reactor)),
      communicator_(communicator),
      secret_(secret),
      self_(self),
      peers_(std::move(peers)),
      states_(peers_.size()) {
  const Peer& own = infoOf(self_);
  for (std::size_t rank = 0; rank < peers_.size(); ++rank)
    states_[rank].sharesMemory = mayShareMemory(own, peers_[rank]);
  reactor_->expect(Purpose::data, inboxKey(communicator_, self_), secret_,
                   [this](FileDescriptor socket, const Hello& hello) { onOffer(std::move(socket), hello); });
}

LocalPorts::~LocalPorts() {
  if (getpid() != process_) {
    // A forked child: the connections are its parent's. To close them would tell the peers that the parent has left.
    for (auto& [key, line] : sends_) static_cast<void>(line.release());
    for (auto& [key, line] : receives_) static_cast<void>(line.release());
    return;
  }
  reactor_->forget(Purpose::data, inboxKey(communicator_, self_));
  // The sockets stay open until nobody watches them: their numbers must not become somebody else's before.
  std::vector<SharedSocket> waiting;
  std::unique_ptr<Alarm> alarm;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    alarm = std::move(redialAlarm_);
    for (auto& [key, line] : sends_) std::ranges::move(std::exchange(line->sockets, {}), std::back_inserter(waiting));
  }
  for (const SharedSocket& socket : waiting) reactor_->unwatch(socket->get());
  alarm.reset();
}

Status LocalPorts::checkKey(const PortKey& key) const {
  if (key.peer < 0 || static_cast<std::size_t>(key.peer) >= peers_.size() || key.channel < 0 ||
      key.channel >= channelLimit || key.lane > Lane::probe)
    return log::decided(Error::internal("no port for rank {}, channel {}: the communicator has {} ranks", key.peer,
                                        key.channel, peers_.size()));
  return {};
}

Medium LocalPorts::mediumTo(Rank peer) const {
  if (peer == self_) return Medium::self;
  return states_.at(static_cast<std::size_t>(peer)).sharesMemory ? Medium::sharedMemory : Medium::socket;
}

Result<SendPort*> LocalPorts::openSend(const PortKey& key) {
  if (auto valid = checkKey(key); !valid) return valid.error();
  const std::lock_guard lock(mutex_);
  auto& known = sends_[key];
  if (known) return known.get();
  auto line = std::make_unique<SendLine>(chunkBytesOf(key));
  if (const auto both = shared_.find(key); both != shared_.end()) {
    attachSockets(key, *line, {both->second});
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
  if (const auto both = shared_.find(key); both != shared_.end()) attachSockets(key, *line, {both->second});
  return *line;
}

Status LocalPorts::connectToSelf(const PortKey& key, SendLine& line) {
  const std::size_t chunkBytes = chunkBytesOf(key);
  auto segment = SharedSegment::createPrivate(ChunkRing::bytesFor(chunkBytes));
  if (!segment) return log::decided(segment.error());
  const MemoryLine memory{std::make_shared<SharedSegment>(std::move(*segment)), ownDoorbell_, nameOf(self_)};
  line.connection.attach(std::make_unique<MemorySendPort>(memory, chunkBytes, stateOf(self_).bytesSent));
  receiveLine(key).connection.attach(std::make_unique<MemoryReceivePort>(memory, chunkBytes));
  ownDoorbell_->ring();
  return {};
}

Status LocalPorts::startConnecting(const PortKey& key, SendLine& line) {
  const std::size_t chunkBytes = chunkBytesOf(key);
  line.offered = segmentFor(key.peer, chunkBytes);
  const std::size_t streams = line.offered ? 1 : static_cast<std::size_t>(streams_);
  while (line.sockets.size() < streams) {
    auto socket = beginConnect(reactor_->address(), infoOf(key.peer).address);
    if (!socket) return log::decided(socket.error());
    line.sockets.push_back(std::make_shared<FileDescriptor>(std::move(*socket)));
  }
  const auto theirs = receives_.find(key);
  const bool theySendElsewhere = theirs != receives_.end() && theirs->second->connection.decided();
  line.isForBothWays = streams == 1 && !line.offered && !theySendElsewhere;
  line.dialled = std::chrono::steady_clock::now();
  for (std::size_t stream = 0; stream < streams; ++stream) greetOnceConnected(key, line, stream);
  return {};
}

void LocalPorts::greetOnceConnected(const PortKey& key, SendLine& line, std::size_t stream) {
  const ConnectionOffer offer{key.channel,
                              key.lane,
                              chunkBytesOf(key),
                              line.offered ? line.offered->name() : "",
                              line.offered ? ownDoorbell_->name() : "",
                              static_cast<int>(stream),
                              static_cast<int>(line.sockets.size()),
                              line.isForBothWays};
  const auto greeting = std::make_shared<Greeting>(
      Hello{Purpose::data, inboxKey(communicator_, key.peer), secret_, self_, offer.encode()});
  reactor_->watch(line.sockets[stream]->get(), POLLOUT,
                  [this, key, &line, stream, greeting](short) { onConnected(key, line, stream, greeting); });
}

std::shared_ptr<SharedSegment> LocalPorts::segmentFor(Rank peer, std::size_t chunkBytes) {
  if (!stateOf(peer).sharesMemory || !doorbellOf(peer)) return nullptr;
  auto segment = SharedSegment::create(ChunkRing::bytesFor(chunkBytes));
  if (segment) return std::make_shared<SharedSegment>(std::move(*segment));
  stopSharingWith(peer, segment.error().message());
  return nullptr;
}

std::shared_ptr<Doorbell> LocalPorts::doorbellOf(Rank peer) {
  auto& doorbell = stateOf(peer).doorbell;
  if (doorbell) return doorbell;
  if (infoOf(peer).process == *processIdentity()) return doorbell = ownDoorbell_;
  auto opened = Doorbell::open(infoOf(peer).doorbell);
  if (opened)
    doorbell = std::move(*opened);
  else
    stopSharingWith(peer, opened.error().message());
  return doorbell;
}

void LocalPorts::stopSharingWith(Rank peer, std::string_view reason) {
  if (stateOf(peer).sharesMemory.exchange(false))
    log::notice("no shared memory with {}, though it is on this node: {}; sockets are used", nameOf(peer), reason);
}

void LocalPorts::attachSockets(const PortKey& key, SendLine& line, std::vector<SharedSocket> sockets) {
  line.connection.attach(makeSocketSendPort(std::move(sockets), nameOf(key.peer), chunkBytesOf(key),
                                            linkThrottle({infoOf(self_).jobRank, infoOf(key.peer).jobRank}),
                                            stateOf(key.peer).bytesSent));
}

void LocalPorts::attachSockets(const PortKey& key, ReceiveLine& line, std::vector<SharedSocket> sockets) {
  line.connection.attach(makeSocketReceivePort(std::move(sockets), nameOf(key.peer), chunkBytesOf(key)));
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
  for (const SharedSocket& socket : line.sockets) reactor_->unwatch(socket->get());
  line.sockets.clear();
  line.offered.reset();
}

void LocalPorts::failLine(SendLine& line, const Error& error) {
  dropDial(line);
  line.isForBothWays = false;
  if (line.connection.decided()) return;  // it sends over the peer's socket
  line.connection.fail(log::decided(error));
  ownDoorbell_->ring();
}

void LocalPorts::onConnected(const PortKey& key, SendLine& line, std::size_t stream,
                             const std::shared_ptr<Greeting>& greeting) {
  const std::lock_guard lock(mutex_);
  if (closing_ || line.sockets.empty()) return;
  const int socket = line.sockets[stream]->get();
  if (auto done = finishConnect(socket, infoOf(key.peer).address, Purpose::data, *greeting); !done)
    return failLine(line, Error(done.error().code(), fmt::format("{}: {}", nameOf(key.peer), done.error().message())));
  reactor_->watch(socket, POLLIN,
                  [this, key, &line, stream, greeting](short) { onChallenge(key, line, stream, *greeting); });
}

void LocalPorts::onChallenge(const PortKey& key, SendLine& line, std::size_t stream, Greeting& greeting) {
  const std::lock_guard lock(mutex_);
  if (closing_ || line.sockets.empty()) return;
  const int socket = line.sockets[stream]->get();
  switch (greeting.read(socket)) {
    case Greeting::Progress::incomplete:
      return;
    case Greeting::Progress::complete:
      reactor_->watch(socket, POLLIN, [this, key, &line, stream](short) { onAnswer(key, line, stream); });
      return;
    case Greeting::Progress::failed:
      return failLine(
          line, Error(greeting.error().code(), fmt::format("{}: {}", nameOf(key.peer), greeting.error().message())));
    case Greeting::Progress::turnedAway:
      if (std::chrono::steady_clock::now() - line.dialled >= dialLimit)
        return failLine(line, Error::remote("{} closed a new connection: it left or never opened this communicator",
                                            nameOf(key.peer)));
      reactor_->unwatch(socket);
      redials_.emplace_back(key, stream);
      if (!redialAlarm_) redialAlarm_ = std::make_unique<Alarm>(reactor_, [this] { redial(); });
      redialAlarm_->set(redialPause);
  }
}

// Who was turned away had come before it was expected, when too many others had.
void LocalPorts::redial() {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, stream] : std::exchange(redials_, {})) {
    const auto found = sends_.find(key);
    if (closing_ || found == sends_.end() || found->second->sockets.size() <= stream) continue;
    SendLine& line = *found->second;
    auto socket = beginConnect(reactor_->address(), infoOf(key.peer).address);
    if (!socket) {
      failLine(line, socket.error());
      continue;
    }
    line.sockets[stream] = std::make_shared<FileDescriptor>(std::move(*socket));
    greetOnceConnected(key, line, stream);
  }
}

void LocalPorts::onAnswer(const PortKey& key, SendLine& line, std::size_t stream) {
  const std::lock_guard lock(mutex_);
  if (closing_ || line.sockets.empty()) return;
  const int socket = line.sockets[stream]->get();
  OfferAnswer answer{};
  const auto got = recv(socket, &answer, sizeof answer, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0)
    return failLine(line, Error::remote("{} closed a new connection: {}", nameOf(key.peer),
                                        got == 0 ? "it left or never opened this communicator" : strerror(errno)));
  if (answer == OfferAnswer::chunkSize)
    return failLine(line, Error::invalidUsage("{} has another NCCL_BUFFSIZE; set it alike on all ranks (here {})",
                                              nameOf(key.peer), bufferBytes_));
  if (answer == OfferAnswer::noDescriptor)
    return failLine(line, Error::remote("{} has no file descriptor left for a connection (raise ulimit -n there)",
                                        nameOf(key.peer)));
  if (answer == OfferAnswer::mine && line.isForBothWays) return dropDial(line);
  const bool memory = answer == OfferAnswer::sharedMemory && line.offered;
  const bool bothWays = answer == OfferAnswer::bothWays && line.isForBothWays;
  if ((!memory && !bothWays && answer != OfferAnswer::socket) || line.connection.decided())
    return failLine(line, Error::remote("{} answered nonsense to a new connection", nameOf(key.peer)));
  reactor_->unwatch(socket);
  if (++line.answered < line.sockets.size()) return;
  if (memory) {
    line.offered->dropName();
    line.connection.attach(
        std::make_unique<MemorySendPort>(MemoryLine{std::move(line.offered), doorbellOf(key.peer), nameOf(key.peer)},
                                         chunkBytesOf(key), stateOf(key.peer).bytesSent));
    line.sockets.clear();
  } else {
    if (line.offered) stopSharingWith(key.peer, "it cannot open it");
    line.offered.reset();
    line.isForBothWays = bothWays;
    const auto sockets = std::exchange(line.sockets, {});
    if (bothWays)
      shareSocket(key, sockets[0]);
    else
      attachSockets(key, line, sockets);
  }
  ownDoorbell_->ring();
}

void LocalPorts::onOffer(FileDescriptor socket, const Hello& hello) {
  auto offer = ConnectionOffer::decode(hello.payload);
  const PortKey key{hello.from, offer ? offer->channel : 0, offer ? offer->lane : Lane::ring};
  if (!offer || hello.from < 0 || static_cast<std::size_t>(hello.from) >= peers_.size() || hello.from == self_) {
    log::warn("a connection that claims to be from rank {} makes no sense; dropped", hello.from);
    return;
  }
  const std::lock_guard lock(mutex_);
  if (offer->bothWays && usesMine(key)) return reply(socket.get(), OfferAnswer::mine);
  if (receiveLine(key).connection.decided()) {
    log::warn("{} opened channel {} a second time; dropped", nameOf(key.peer), key.channel);
    return;
  }
  accept(key, *offer, std::move(socket), hello.admitted);
  ownDoorbell_->ring();
}

void LocalPorts::accept(const PortKey& key, const ConnectionOffer& offer, FileDescriptor socket, bool admitted) {
  auto& connection = receiveLine(key).connection;
  const std::size_t chunkBytes = chunkBytesOf(key);
  if (!admitted) {
    connection.fail(log::decided(Error::system("no connection from {}: {}", nameOf(key.peer), reasonOf(EMFILE))));
    return reply(socket.get(), OfferAnswer::noDescriptor);
  }
  if (offer.chunkBytes != chunkBytes) {
    connection.fail(
        log::decided(Error::invalidUsage("{} has another NCCL_BUFFSIZE ({}); set it alike on all ranks (here {})",
                                         nameOf(key.peer), offer.chunkBytes * chunkSlots, chunkBytes * chunkSlots)));
    return reply(socket.get(), OfferAnswer::chunkSize);
  }
  if (!offer.segment.empty()) {
    auto doorbell = stateOf(key.peer).sharesMemory ? doorbellOf(key.peer) : nullptr;
    auto segment = SharedSegment::open(offer.segment, ChunkRing::bytesFor(chunkBytes));
    if (doorbell && segment) {
      connection.attach(std::make_unique<MemoryReceivePort>(
          MemoryLine{std::make_shared<SharedSegment>(std::move(*segment)), std::move(doorbell), nameOf(key.peer)},
          chunkBytes));
      return reply(socket.get(), OfferAnswer::sharedMemory);
    }
    if (!segment && hungUp(socket.get())) {
      connection.fail(Error::remote("{} left while it connected", nameOf(key.peer)));
      return;
    }
    if (!segment) stopSharingWith(key.peer, segment.error().message());
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

bool mayShareMemory(const Peer& one, const Peer& other) {
  return one.node == other.node && !one.doorbell.empty() && !other.doorbell.empty();
}

std::string describe(Rank rank, const Peer& peer) {
  if (peer.jobRank < 0 || peer.jobRank == rank) return fmt::format("rank {} ({})", rank, peer.address.text());
  return fmt::format("rank {} (rank {} of the job, {})", rank, peer.jobRank, peer.address.text());
}

Result<std::unique_ptr<Ports>> makeLocalPorts(std::shared_ptr<Reactor> reactor, CommunicatorId communicator,
                                              const Secret& secret, Rank self, std::vector<Peer> peers) {
  if (self < 0 || static_cast<std::size_t>(self) >= peers.size())
    return log::decided(Error::internal("rank {} of {} cannot have ports", self, peers.size()));
  return std::unique_ptr<Ports>(
      std::make_unique<LocalPorts>(std::move(reactor), communicator, secret, self, std::move(peers)));
}

}  // namespace falcon::transport
