#include "socket/socket_sender.h"

#include <algorithm>
#include <limits>

#include "base/net_parameters.h"

namespace falcon::net {

Result<std::unique_ptr<Connection>> SocketSender::make(int device, std::vector<FileDescriptor> sockets,
                                                       std::string peerName) {
  auto mover = makeMover(sockets, Direction::send);
  if (!mover) return mover.error();
  return std::unique_ptr<Connection>(
      std::make_unique<SocketSender>(device, std::move(sockets), std::move(peerName), std::move(*mover)));
}

SocketSender::SocketSender(int device, std::vector<FileDescriptor> sockets, std::string peerName,
                           std::unique_ptr<Mover> mover)
    : SocketConnection(device, Direction::send, std::move(sockets), std::move(peerName), std::move(mover)),
      piece_(socketCount() == 1 ? std::numeric_limits<std::size_t>::max()
                                : static_cast<std::size_t>(parameters::netPiece.value())),
      lanes_(socketCount()),
      idle_(socketCount()) {}

Status SocketSender::move() {
  feed();
  for (int moves = 0; moves < mostMoves; ++moves) {
    const auto moved = mover().next();
    if (!moved) break;
    if (moved->bytes <= 0) return failed(static_cast<int>(-moved->bytes), "sending");
    const auto place = static_cast<std::size_t>(moved->socket);
    Lane& lane = lanes_[place];
    lane.sent += static_cast<std::size_t>(moved->bytes);
    if (lane.sent < sizeof lane.frame + lane.frame.length) {
      begin(place);
      continue;
    }
    SocketRequest& request = *lane.request;
    lane.request = nullptr;
    ++idle_;
    request.moved += lane.frame.length;
    if (request.moved == request.size && request.isSized) done(request);
    feed();
  }
  return {};
}

void SocketSender::feed() {
  for (std::size_t place = 0; idle_ > 0 && nextToGive_ != added_ && place < lanes_.size(); ++place) {
    Lane& lane = lanes_[place];
    if (lane.request) continue;
    SocketRequest& next = request(nextToGive_);
    lane.request = &next;
    lane.sent = 0;
    lane.frame = {.message = static_cast<std::uint32_t>(nextToGive_),
                  .total = next.size,
                  .offset = next.given,
                  .length = std::min(piece_, next.size - next.given)};
    next.given += lane.frame.length;
    next.isSized = next.given == next.size;  // all of it is given
    if (next.isSized) ++nextToGive_;
    --idle_;
    begin(place);
  }
}

void SocketSender::begin(std::size_t place) {
  Lane& lane = lanes_[place];
  const std::size_t ofFrame = std::min(lane.sent, sizeof lane.frame);
  const std::size_t ofPiece = lane.sent - ofFrame;
  std::array<iovec, mostParts> parts;
  std::size_t count = 0;
  if (ofFrame < sizeof lane.frame)
    parts[count++] = {reinterpret_cast<std::byte*>(&lane.frame) + ofFrame, sizeof lane.frame - ofFrame};
  if (ofPiece < lane.frame.length)
    parts[count++] = {lane.request->data + lane.frame.offset + ofPiece, lane.frame.length - ofPiece};
  mover().begin(static_cast<int>(place), std::span(parts).first(count));
}

}  // namespace falcon::net
