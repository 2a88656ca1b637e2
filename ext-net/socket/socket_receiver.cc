#include "socket/socket_receiver.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"

namespace falcon::net {
namespace {

/// The peer's sockets end together, but not at the same moment.
constexpr Nanoseconds endingLimit = 1s;

}  // namespace

Result<std::unique_ptr<Connection>> SocketReceiver::make(int device, std::vector<FileDescriptor> sockets,
                                                         std::string peerName) {
  auto mover = makeMover(sockets, Direction::receive);
  if (!mover) return mover.error();
  return std::unique_ptr<Connection>(
      std::make_unique<SocketReceiver>(device, std::move(sockets), std::move(peerName), std::move(*mover)));
}

SocketReceiver::SocketReceiver(int device, std::vector<FileDescriptor> sockets, std::string peerName,
                               std::unique_ptr<Mover> mover)
    : SocketConnection(device, Direction::receive, std::move(sockets), std::move(peerName), std::move(mover)) {
  for (std::size_t place = 0; place < socketCount(); ++place) lanes_.push_back(std::make_unique<Lane>());
}

void SocketReceiver::added() {
  for (auto& lane : lanes_) lane->isParked = false;
  if (overSince_) overSince_ = SystemClock::instance().now();  // nothing was read while there was no room
}

Status SocketReceiver::move() {
  for (std::size_t place = 0; place < lanes_.size(); ++place) {
    Lane& lane = *lanes_[place];
    if (lane.isReading || lane.isParked || lane.isOver || firstOpen_ == added_) continue;
    if (const Status parsed = parse(lane); !parsed) return parsed;
    if (!lane.isParked && firstOpen_ != added_) begin(place);
  }
  for (int moves = 0; moves < mostMoves; ++moves) {
    const auto moved = mover().next();
    if (!moved) break;
    const auto place = static_cast<std::size_t>(moved->socket);
    Lane& lane = *lanes_[place];
    lane.isReading = false;
    if (moved->bytes < 0) return failed(static_cast<int>(-moved->bytes), "receiving");
    if (moved->bytes == 0) {
      if (const Status over = hungUp(lane); !over) return over;
      continue;
    }
    if (overSince_) overSince_ = SystemClock::instance().now();  // by one that is not over something still comes
    if (const Status taken = take(lane, static_cast<std::size_t>(moved->bytes)); !taken) return taken;
    if (!lane.isParked && firstOpen_ != added_) begin(place);
  }
  if (overSince_ && firstOpen_ != added_ && SystemClock::instance().now() - *overSince_ > endingLimit)
    return failed(0, "receiving");
  return {};
}

Status SocketReceiver::hungUp(Lane& lane) {
  lane.isOver = true;
  if (!overSince_) overSince_ = SystemClock::instance().now();
  const bool inMidPiece = lane.left > 0 || lane.from != lane.to;
  const bool last = std::all_of(lanes_.begin(), lanes_.end(), [](const auto& one) { return one->isOver; });
  if (inMidPiece) return failed(0, "in the middle of a message");
  if (last && firstOpen_ != added_) return failed(0, "receiving");
  return {};
}

void SocketReceiver::begin(std::size_t place) {
  Lane& lane = *lanes_[place];
  std::array<iovec, mostParts> parts;
  std::size_t count = 0;
  if (lane.left > 0) parts[count++] = {lane.request->data + lane.at, lane.left};
  parts[count++] = {lane.stash.data() + lane.to, lane.stash.size() - lane.to};
  lane.isReading = true;
  mover().begin(static_cast<int>(place), std::span(parts).first(count));
}

Status SocketReceiver::take(Lane& lane, std::size_t bytes) {
  const std::size_t direct = std::min(bytes, lane.left);
  lane.at += direct;
  lane.left -= direct;
  if (lane.request) {
    lane.request->moved += direct;
    if (lane.left == 0) close(lane);
  }
  lane.to += bytes - direct;
  return parse(lane);
}

Status SocketReceiver::parse(Lane& lane) {
  while (!lane.request && !lane.isParked && lane.to - lane.from >= sizeof(Frame)) {
    Frame frame;
    std::memcpy(&frame, lane.stash.data() + lane.from, sizeof frame);
    if (const Status opened = open(lane, frame); !opened) return opened;
    if (lane.isParked) break;
    lane.from += sizeof frame;
    const std::size_t here = std::min(lane.left, lane.to - lane.from);
    if (here > 0) std::memcpy(lane.request->data + lane.at, lane.stash.data() + lane.from, here);
    lane.from += here;
    lane.at += here;
    lane.left -= here;
    lane.request->moved += here;
    if (lane.left == 0) close(lane);
  }
  if (lane.from > 0) {
    std::memmove(lane.stash.data(), lane.stash.data() + lane.from, lane.to - lane.from);
    lane.to -= lane.from;
    lane.from = 0;
  }
  return {};
}

Status SocketReceiver::open(Lane& lane, const Frame& frame) {
  const auto wrong = [&](std::string_view what) {
    return fail(log::decided(Error::remote(
        "{} sent what is no message of this connection: {} (magic {:#x}, message {}, {} bytes at {} of {}). Do both "
        "ends "
        "have the same release of {}?",
        peerName(), what, frame.magic, frame.message, frame.length, frame.offset, frame.total, networkName)));
  };
  if (frame.magic != Frame::expectedMagic) return wrong("it does not begin as one");
  const auto ahead = static_cast<std::uint32_t>(frame.message - static_cast<std::uint32_t>(firstOpen_));
  const std::uint64_t posted = added_ - firstOpen_;
  if (ahead > 1u << 31) return wrong("it was over");
  if (ahead >= posted) {
    lane.isParked = true;
    return {};
  }
  SocketRequest& its = request(firstOpen_ + ahead);
  if (its.isDone) return wrong("it was over");
  if (frame.length > frame.total || frame.offset > frame.total - frame.length)
    return wrong("a piece lies outside of its message");
  if (!its.isSized) {
    if (frame.total > its.size)
      return fail(log::decided(Error::invalidUsage("{} sent a message of {} bytes where {} were expected at most",
                                                   peerName(), frame.total, its.size)));
    its.size = frame.total;
    its.isSized = true;
  }
  if (frame.total != its.size) return wrong("two pieces differ in what their message is");
  if (its.given + frame.length > its.size) return wrong("there are more pieces than the message has bytes");
  its.given += frame.length;
  lane.request = &its;
  lane.at = frame.offset;
  lane.left = frame.length;
  return {};
}

void SocketReceiver::close(Lane& lane) {
  SocketRequest& its = *lane.request;
  lane.request = nullptr;
  if (its.moved == its.size) done(its);
}

}  // namespace falcon::net
