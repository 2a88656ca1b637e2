// How a bus node gets another controller: by hand-over, by being sent after one, or because its own is gone.
#include <poll.h>

#include "base/log.h"
#include "bootstrap/bus_node.h"
#include "transport/connect.h"

namespace falcon::bootstrap {
namespace {

constexpr auto attemptLimit = 5s;  // for an answer of one process
constexpr auto askAgain = 50ms;    // after `later`
constexpr auto holdLimit = 1s;     // for the mark to come around
constexpr auto returnLimit = 10s;  // for the members of a lost controller
constexpr auto tickInterval = 50ms;

std::chrono::steady_clock::time_point now() {
  return std::chrono::steady_clock::now();
}

}  // namespace

void BusNode::onRequest(const Channel& channel, const BusFrame& frame) {
  const BusPeer asker = frame.peers[0];
  if (asker.id == self_.id || asker.id == theController || asker.id == everyone) {
    newcomers_.erase(channel);
    return sayForged(fmt::format("a newcomer claims to be process {:x}", asker.id));
  }
  // It has a connection: either that has ended, and we shall hear of it, or this is somebody else.
  if (isController() && links_.contains(asker.id)) return send(channel, {.kind = Kind::later});
  const bool orphan = !isController() && !up_;
  if (orphan || (!isController() && frame.from == controller_.id))  // my controller is gone too, or will turn out to be
    return send(channel, {.kind = Kind::later});
  if (isController() && self_.id < asker.id) return admitMember(channel, frame);
  if (controller_.id < asker.id) return send(channel, {.kind = Kind::redirect, .peers = {controller_}});
  send(channel, {.kind = Kind::declined});
  route({.kind = Kind::handOver, .from = self_.id, .peers = {asker}, .secret = asker.secret});
}

void BusNode::handOver(const BusPeer& target, const transport::Secret& secret) {
  for (const auto& [queued, unused] : handOvers_)
    if (queued.id == target.id) return;
  if (attempt_ && attempt_->target.id == target.id) return;
  handOvers_.emplace_back(target, secret);
  nextHandOver();
}

void BusNode::nextHandOver() {
  while (!attempt_ && !handOvers_.empty()) {
    const auto [target, secret] = handOvers_.front();
    handOvers_.pop_front();
    if (peers_.contains(target.id)) continue;  // one part already
    if (isController()) return begin({.why = Why::handOver, .target = target, .secret = secret});
    sendUp({.kind = Kind::handOver, .from = self_.id, .peers = {target}, .secret = secret});  // today's sees to it
  }
}

void BusNode::begin(Attempt attempt) {
  if (attempt_ && attempt_->socket) reactor_->unwatch(attempt_->socket.get());
  attempt_ = std::move(attempt);
  if (attempt_->why != Why::handOver) holding_ = true;
  attempt_->deadline = now() + attemptLimit;
  alarm_->set(tickInterval);
  dial();
}

void BusNode::dial() {
  auto socket = transport::beginConnect(self_.address, attempt_->target.address);
  if (!socket) return attemptFailed();
  attempt_->socket = std::move(*socket);
  reactor_->watch(attempt_->socket.get(), POLLOUT, [weak = weak_from_this()](short) {
    const auto node = weak.lock();
    if (node && node->attempt_ && node->attempt_->socket) node->connected();
  });
}

void BusNode::connected() {
  const int socket = attempt_->socket.get();
  attempt_->greeting.emplace(transport::Hello{
      transport::Purpose::bus, busKey(attempt_->secret, attempt_->target.id), attempt_->secret, -1, {}});
  if (!transport::finishConnect(socket, attempt_->target.address, transport::Purpose::bus, *attempt_->greeting))
    return attemptFailed();
  reactor_->watch(socket, POLLIN, [weak = weak_from_this()](short) {
    const auto node = weak.lock();
    if (node && node->attempt_ && node->attempt_->greeting) node->challenged();
  });
}

void BusNode::challenged() {
  using Progress = transport::Greeting::Progress;
  const Progress progress = attempt_->greeting->read(attempt_->socket.get());
  if (progress == Progress::incomplete) return;
  if (progress == Progress::failed) {
    log::warn("the bus of this job: {}", attempt_->greeting->error().message());
    return attemptFailed();
  }
  attempt_->greeting.reset();
  reactor_->unwatch(attempt_->socket.get());
  if (progress == Progress::turnedAway) {  // too many had come there before they were expected
    attempt_->socket.reset();
    attempt_->again = now() + askAgain;
    return;
  }
  attempt_->channel = openChannel(std::move(attempt_->socket));
  ask();
}

void BusNode::ask() {
  attempt_->again.reset();
  BusFrame request{.kind = Kind::request, .from = attempt_->lost, .peers = {self_}};
  if (attempt_->why == Why::moveTo) request.to = controller_.id;
  request.bytes = packIds(speakers_.all());
  send(attempt_->channel, request);
}

void BusNode::onAnswer(const BusFrame& frame) {
  switch (frame.kind) {
    case Kind::welcome:
      return onWelcome(frame);
    case Kind::later:
      attempt_->again = now() + askAgain;
      return;
    case Kind::redirect: {
      const BusPeer& there = frame.peers[0];
      if (there.id == self_.id || attempt_->tried.contains(there.id)) return attemptFailed();  // never in circles
      Attempt next{.why = attempt_->why, .target = there, .secret = there.secret, .lost = attempt_->lost};
      next.tried = attempt_->tried;
      next.tried.insert(attempt_->target.id);
      return begin(std::move(next));
    }
    case Kind::declined: {  // they come to us
      const Why why = attempt_->why;
      attempt_.reset();
      if (why != Why::handOver) becomeController();
      return nextHandOver();
    }
    default:
      return;
  }
}

void BusNode::onWelcome(const BusFrame& frame) {
  if (frame.peers[0].id != attempt_->target.id) {
    sayForged(fmt::format("process {:x} answered as {:x}", attempt_->target.id, frame.peers[0].id));
    return attemptFailed();
  }
  const Why why = attempt_->why;
  const Channel before = std::exchange(up_, attempt_->channel);
  attempt_.reset();
  controller_ = frame.peers[0];
  peers_ = {{self_.id, self_}};
  for (const BusPeer& peer : frame.peers) peers_[peer.id] = peer;
  expectedBack_.clear();
  publish();
  for (const auto& [id, peer] : peers_) announceJoined(id);
  inbox_.put({BusMessage::Kind::controllerChanged, controller_.id, {}});

  if (why == Why::handOver) {
    toMembers({.kind = Kind::moveTo, .peers = {controller_}});
    oldLinks_ = std::exchange(links_, {});
  }
  if (why == Why::moveTo && before) {
    oldUp_ = before;
    send(oldUp_, {.kind = Kind::mark, .from = self_.id});
    holdUntil_ = now() + holdLimit;
    alarm_->set(tickInterval);
  } else {
    releaseHeld();
  }
  nextHandOver();
}

void BusNode::attemptFailed() {
  Attempt failed = std::move(*attempt_);
  attempt_.reset();
  if (failed.socket) reactor_->unwatch(failed.socket.get());
  if (failed.why == Why::handOver) {
    // A process that has ended hangs up or refuses: at the end of a job that is how it should be.
    if (now() >= failed.deadline)
      log::warn("two parts of the job stay apart for now: the controller at {} does not answer",
                failed.target.address.text());
    else
      log::info("the controller at {} left before the two parts of the job were one", failed.target.address.text());
    return nextHandOver();
  }
  failed.tried.insert(failed.target.id);
  elect(failed.lost, std::move(failed.tried));
}

void BusNode::controllerLost() {
  const ProcessId lost = controller_.id;
  up_.reset();
  peers_.erase(lost);
  publish();
  announceLeft(lost);
  if (attempt_ && attempt_->why == Why::moveTo) return;  // on the way to another anyway
  elect(lost, {lost});
}

// The lowest that remains; all know the same table, so they choose alike.
void BusNode::elect(ProcessId lost, std::set<ProcessId> tried) {
  for (const auto& [id, peer] : peers_) {
    if (id == self_.id) break;
    if (tried.contains(id)) continue;
    return begin({.why = Why::lost, .target = peer, .secret = peer.secret, .lost = lost, .tried = std::move(tried)});
  }
  becomeController();
}

void BusNode::becomeController() {
  controller_ = self_;
  up_.reset();
  for (const auto& [id, peer] : peers_)
    if (id != self_.id && !links_.contains(id)) expectedBack_[id] = now() + returnLimit;
  publish();
  inbox_.put({BusMessage::Kind::controllerChanged, self_.id, {}});
  releaseHeld();
  alarm_->set(tickInterval);
}

void BusNode::releaseHeld() {
  oldUp_.reset();
  if (attempt_ && attempt_->why != Why::handOver) return;  // not there yet
  holding_ = false;
  heldBytes_ = 0;
  for (BusFrame& frame : std::exchange(held_, {})) {
    if (frame.kind == Kind::mark)
      onMark(std::move(frame));
    else
      route(std::move(frame));
  }
}

void BusNode::tick() {
  if (leaving_) return;
  if (attempt_ && now() >= attempt_->deadline) attemptFailed();
  if (attempt_ && attempt_->again && now() >= *attempt_->again) {
    if (attempt_->channel) {
      ask();
    } else {
      attempt_->again.reset();
      dial();
    }
  }
  if (oldUp_ && now() >= holdUntil_) releaseHeld();
  std::vector<ProcessId> lost;
  for (const auto& [id, deadline] : expectedBack_)
    if (now() >= deadline) lost.push_back(id);
  for (const ProcessId id : lost) {
    expectedBack_.erase(id);
    memberGone(id);
  }
  if (attempt_ || oldUp_ || !expectedBack_.empty()) alarm_->set(tickInterval);
}

}  // namespace falcon::bootstrap
