#include "bootstrap/bus_node.h"

#include "base/log.h"

namespace falcon::bootstrap {
namespace {

constexpr std::size_t queueLimit = 16 << 20;  // of one connection; beyond it messages are dropped

}  // namespace

BusNode::BusNode(std::shared_ptr<transport::Reactor> reactor, ProcessId id, const transport::Secret& secret)
    : reactor_(std::move(reactor)), self_{id, reactor_->address(), secret}, controller_(self_) {
  peers_[id] = self_;
  announced_.insert(id);
  publish();
}

void BusNode::open() {
  alarm_ = std::make_unique<transport::Alarm>(reactor_, [weak = weak_from_this()] {
    if (const auto node = weak.lock()) node->tick();
  });
  expect(self_.secret);
}

void BusNode::leave() {
  leaving_ = true;
  const BusFrame bye{.kind = Kind::bye, .from = self_.id};
  if (up_) send(up_, bye);
  toMembers(bye);
  for (const std::uint64_t key : expectedKeys_) reactor_->forget(transport::Purpose::bus, key);
  if (attempt_ && attempt_->socket) reactor_->unwatch(attempt_->socket.get());
  attempt_.reset();
  links_.clear();
  oldLinks_.clear();
  newcomers_.clear();
  up_.reset();
  oldUp_.reset();
  alarm_.reset();
}

BusPeer BusNode::controller() const {
  const std::lock_guard lock(mutex_);
  return publishedController_;
}

std::vector<ProcessId> BusNode::members() const {
  const std::lock_guard lock(mutex_);
  return publishedMembers_;
}

void BusNode::publish() {
  const std::lock_guard lock(mutex_);
  publishedController_ = controller_;
  publishedMembers_.clear();
  for (const auto& [id, peer] : peers_) publishedMembers_.push_back(id);
}

void BusNode::expect(const transport::Secret& secret) {
  const std::uint64_t key = busKey(secret, self_.id);
  if (!expectedKeys_.insert(key).second) return;
  reactor_->expect(transport::Purpose::bus, key, secret,
                   [weak = weak_from_this()](FileDescriptor socket, const transport::Hello& hello) {
                     const auto node = weak.lock();
                     if (node && !node->leaving_ && hello.admitted)
                       node->newcomers_.insert(node->openChannel(std::move(socket)));
                   });
}

BusNode::Channel BusNode::openChannel(FileDescriptor socket) {
  auto channel = std::make_shared<MessageChannel>(reactor_, std::move(socket), queueLimit);
  const std::weak_ptr<MessageChannel> weakChannel = channel;
  channel->start(
      [weak = weak_from_this(), weakChannel](std::string_view bytes) {
        const auto node = weak.lock();
        const auto from = weakChannel.lock();
        if (node && from) node->receive(from, bytes);
      },
      [weak = weak_from_this(), weakChannel](const std::string&) {
        const auto node = weak.lock();
        const auto from = weakChannel.lock();
        if (node && from) node->closed(from);
      });
  return channel;
}

void BusNode::receive(const Channel& channel, std::string_view bytes) {
  reactorThread_.store(std::this_thread::get_id());
  if (leaving_) return;
  BusFrame frame;
  if (!BusFrame::decode(bytes, frame)) {
    log::warn("a connection of the bus was closed: it carried a message that makes no sense");
    channel->close();
    return closed(channel);
  }
  if (newcomers_.contains(channel)) {
    if (frame.kind == Kind::request) onRequest(channel, frame);
    return;
  }
  if (attempt_ && channel == attempt_->channel) return onAnswer(frame);
  if (channel == up_) return fromController(std::move(frame));
  // From the controller before nothing comes any more, and of a connection that another has replaced nothing counts.
  if (const auto member = memberAt(channel)) fromMember(*member, std::move(frame));
}

std::optional<ProcessId> BusNode::memberAt(const Channel& channel) const {
  for (const auto* links : {&links_, &oldLinks_})
    for (const auto& [id, link] : *links)
      if (link == channel) return id;
  return std::nullopt;
}

bool BusNode::mayCome(ProcessId sender, ProcessId over) const {
  return sender != self_.id && sender != controller_.id && speakers_.mayCome(sender, over);
}

void BusNode::sayForged(std::string_view what) {
  if (!std::exchange(warnedForged_, true))
    log::warn("on the bus of this job {}; it was dropped, as others like it are", what);
}

void BusNode::closed(const Channel& channel) {
  reactorThread_.store(std::this_thread::get_id());
  if (leaving_) return;
  newcomers_.erase(channel);
  for (auto old = oldLinks_.begin(); old != oldLinks_.end();) {
    if (old->second != channel) {
      ++old;
      continue;
    }
    if (!links_.contains(old->first)) speakers_.forget(old->first);
    old = oldLinks_.erase(old);
  }
  if (attempt_ && channel == attempt_->channel) return attemptFailed();
  if (channel == oldUp_) return releaseHeld();
  if (channel == up_) return controllerLost();
  for (const auto& [id, link] : links_)
    if (link == channel) return memberGone(id);
}

void BusNode::fromController(BusFrame frame) {
  switch (frame.kind) {
    case Kind::joined:
      peers_[frame.peers[0].id] = frame.peers[0];
      publish();  // first, so that whoever reads the news sees the members it tells of
      return announceJoined(frame.peers[0].id);
    case Kind::left:
      if (frame.from == self_.id) return;
      peers_.erase(frame.from);
      publish();
      return announceLeft(frame.from);
    case Kind::moveTo:
      return begin({.why = Why::moveTo, .target = frame.peers[0], .secret = frame.peers[0].secret});
    case Kind::markDone:
      return releaseHeld();
    case Kind::bye:
      return controllerLost();
    default:
      return arrived(std::move(frame));
  }
}

void BusNode::fromMember(ProcessId member, BusFrame frame) {
  if (!mayCome(frame.from, member))
    return sayForged(fmt::format("process {:x} sent a message that claims to be from {:x}", member, frame.from));
  switch (frame.kind) {
    case Kind::bye:
      if (frame.from == member && links_.contains(member)) memberGone(member);
      return;
    case Kind::mark:
      return onMark(std::move(frame));
    case Kind::text:
    case Kind::admit:
    case Kind::handOver:
      // To all speaks the controller alone; one that has just ceased to be may not know it yet.
      if (frame.to == everyone && isController()) return;
      return route(std::move(frame));
    default:
      return;
  }
}

void BusNode::onMark(BusFrame frame) {
  if (!isController()) return sendUp(std::move(frame));
  speakers_.settle(frame.from);
  const auto link = links_.find(frame.from);
  if (link == links_.end()) return;
  frame.kind = Kind::markDone;
  send(link->second, frame);
}

void BusNode::route(BusFrame frame) {
  reactorThread_.store(std::this_thread::get_id());
  if (leaving_) return;
  if (frame.to == self_.id) return arrived(std::move(frame));
  if (!isController()) return sendUp(std::move(frame));
  if (frame.to == theController) return arrived(std::move(frame));
  if (frame.to == everyone) {
    toMembers(frame);
    return arrived(std::move(frame));
  }
  if (const auto link = links_.find(frame.to); link != links_.end()) send(link->second, frame);
}

// At whom it was for.
void BusNode::arrived(BusFrame frame) {
  switch (frame.kind) {
    case Kind::text:
      return inbox_.put({BusMessage::Kind::text, frame.from, std::move(frame.bytes)});
    case Kind::admit:
      return expect(frame.secret);
    case Kind::handOver:
      return handOver(frame.peers[0], frame.secret);
    default:
      return;
  }
}

void BusNode::meet(const std::vector<BusContact>& contacts, const transport::Secret& secret) {
  reactorThread_.store(std::this_thread::get_id());
  if (leaving_) return;
  const BusContact* lowest = nullptr;
  bool differ = false;
  for (const BusContact& contact : contacts) {
    differ = differ || contact.controller != contacts[0].controller;
    if (!lowest || contact.controller < lowest->controller) lowest = &contact;
  }
  if (!differ) return;  // one part already: parts only fall apart when a controller dies
  const ProcessId target = lowest->controller;
  bool knowsTarget = controller_.id == target;
  for (const BusContact& contact : contacts)
    knowsTarget = knowsTarget || (contact.process == self_.id && contact.controller == target);
  // Those of the target's part tell it whom to let in; the others tell their controller where to go.
  BusFrame frame{.kind = Kind::admit, .from = self_.id, .to = target, .secret = secret};
  if (!knowsTarget) {
    frame.kind = Kind::handOver;
    frame.to = theController;
    frame.peers = {BusPeer{.id = target, .address = lowest->controllerAddress}};
  }
  route(std::move(frame));
}

void BusNode::admitMember(const Channel& channel, const BusFrame& request) {
  const BusPeer peer = request.peers[0];
  newcomers_.erase(channel);
  speakers_.admit(peer.id, request.to != theController, unpackIds(request.bytes));
  oldLinks_.erase(peer.id);
  expectedBack_.erase(peer.id);
  BusFrame welcome{.kind = Kind::welcome, .peers = {self_}};
  for (const auto& [id, other] : peers_)
    if (id != self_.id) welcome.peers.push_back(other);
  send(channel, welcome);
  links_[peer.id] = channel;  // should there be an older one, this ends it
  peers_[peer.id] = peer;
  toMembers({.kind = Kind::joined, .peers = {peer}}, peer.id);
  publish();
  announceJoined(peer.id);
}

void BusNode::memberGone(ProcessId id) {
  links_.erase(id);
  speakers_.forget(id);
  peers_.erase(id);
  toMembers({.kind = Kind::left, .from = id});
  publish();
  announceLeft(id);
}

void BusNode::announceJoined(ProcessId id) {
  if (announced_.insert(id).second) inbox_.put({BusMessage::Kind::joined, id, {}});
}

void BusNode::announceLeft(ProcessId id) {
  if (announced_.erase(id) > 0) inbox_.put({BusMessage::Kind::left, id, {}});
}

void BusNode::sendUp(BusFrame frame) {
  if (up_ && !holding_) return send(up_, frame);
  if (heldBytes_ + frame.bytes.size() > queueLimit) return;  // as a full connection would
  heldBytes_ += frame.bytes.size();
  held_.push_back(std::move(frame));
}

void BusNode::send(const Channel& channel, const BusFrame& frame) {
  if (channel->send(frame.encode()) || warnedFull_) return;
  warnedFull_ = true;
  log::warn("a message on the bus was not sent: the receiver does not read, or has just gone");
}

void BusNode::toMembers(const BusFrame& frame, ProcessId except) {
  for (const auto& [id, link] : links_)
    if (id != except) send(link, frame);
}

}  // namespace falcon::bootstrap
