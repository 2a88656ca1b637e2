#include "collectives/message_run.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "collectives/exchange.h"

namespace falcon::collectives {
namespace {

using transport::Lane;

// Chunks of a message in a row before the others get their turn.
constexpr int chunksPerTurn = 8;

std::size_t chunkBytesOf(const MemberShape& shape, const Call& call) {
  return messageChunkOf(shape, call) * sizeOf(call.type);
}

}  // namespace

void MessageRun::begin(transport::Ports& ports) {
  ports_ = &ports;
  messages_.clear();
}

Status MessageRun::add(const MemberShape& shape, const Call& call) {
  const std::size_t bytes = call.count * sizeOf(call.type);
  const std::size_t chunk = chunkBytesOf(shape, call);
  if (call.operation == Operation::send)
    return addSend(call.peer, messageChannel, {static_cast<const std::byte*>(call.send), bytes}, chunk);
  return addReceive(call.peer, messageChannel, {static_cast<std::byte*>(call.receive), bytes}, chunk);
}

Status MessageRun::addExchange(const MemberShape& shape, const Call& call) {
  struct Sink {
    MessageRun& run;
    const std::byte* input;
    std::byte* output;
    std::size_t block;
    std::size_t chunk;
    Status added;

    void copy(int from, int to) const {
      if (output + to * block != input + from * block) std::memcpy(output + to * block, input + from * block, block);
    }
    void send(Rank peer, int from) {
      if (added) added = run.addSend(peer, exchangeChannel, {input + from * block, block}, chunk);
    }
    void receive(Rank peer, int to) {
      if (added) added = run.addReceive(peer, exchangeChannel, {output + to * block, block}, chunk);
    }
  };
  if (call.count == 0) return {};
  Sink sink{*this,
            static_cast<const std::byte*>(call.send),
            static_cast<std::byte*>(call.receive),
            call.count * sizeOf(call.type),
            chunkBytesOf(shape, call),
            {}};
  visitExchange(shape.rank, shape.size, call, sink);
  return sink.added;
}

Status MessageRun::addSend(Rank peer, int channel, std::span<const std::byte> from, std::size_t chunkBytes) {
  if (from.empty()) return {};
  const auto port = ports_->openSend({peer, channel, Lane::peerToPeer});
  if (!port) return port.error();
  push({.peer = peer, .out = *port, .from = from, .chunkBytes = chunkBytes});
  return {};
}

Status MessageRun::addReceive(Rank peer, int channel, std::span<std::byte> to, std::size_t chunkBytes) {
  if (to.empty()) return {};
  const auto port = ports_->openReceive({peer, channel, Lane::peerToPeer});
  if (!port) return port.error();
  push({.peer = peer, .in = *port, .to = to, .chunkBytes = chunkBytes});
  return {};
}

void MessageRun::push(const Message& message) {
  messages_.push_back(message);
  sources_.reserve(messages_.capacity());  // now and not at the first wait, which may come much later
}

Result<bool> MessageRun::progress() {
  bool moved = false;
  for (Message& message : messages_) {
    if (waitsForAnEarlierOne(message)) continue;
    const auto progressed = progress(message);
    if (!progressed) return progressed;
    moved |= *progressed;
  }
  if (moved) std::erase_if(messages_, [](const Message& message) { return message.finished(); });
  return moved;
}

/// One port carries one message after the other.
bool MessageRun::waitsForAnEarlierOne(const Message& message) const {
  for (const Message* earlier = messages_.data(); earlier != &message; ++earlier)
    if (earlier->out == message.out && earlier->in == message.in && !earlier->finished()) return true;
  return false;
}

Result<bool> MessageRun::progress(Message& message) {
  bool moved = false;
  if (message.out && !message.out->flushed()) {
    const auto left = message.out->progress();
    if (!left) return left;
    moved = *left;
  }
  for (int i = 0; i < chunksPerTurn && message.done < message.bytes(); ++i) {
    const auto passed = message.out ? sendChunk(message) : receiveChunk(message);
    if (!passed) return passed;
    if (!*passed) break;
    moved = true;
  }
  return moved;
}

Result<bool> MessageRun::sendChunk(Message& message) {
  const auto slot = message.out->acquire();
  if (!slot) return slot.error();
  if (slot->empty()) return false;
  const auto rest = message.from.subspan(message.done);
  const auto chunk = rest.first(std::min(rest.size(), message.chunkBytes));
  if (slot->size() < chunk.size())
    return log::decided(Error::internal("a chunk of {} bytes does not fit into {}", chunk.size(), slot->size()));
  if (message.out->sendsInPlace(chunk.size())) {
    message.out->commitFrom(chunk, chunk.size() < rest.size());
  } else {
    std::memcpy(slot->data(), chunk.data(), chunk.size());
    message.out->commit(chunk.size());
  }
  message.done += chunk.size();
  return true;
}

Result<bool> MessageRun::receiveChunk(Message& message) {
  const auto rest = message.to.subspan(message.done);
  const auto place = rest.first(std::min(rest.size(), message.chunkBytes));
  const auto ready = message.in->readyInto(place);
  if (!ready || !*ready) return ready;
  const auto chunk = message.in->chunk();
  if (chunk.size() != place.size()) return log::decided(chunkMisfit(message.peer, chunk.size(), place.size()));
  if (chunk.data() != place.data()) std::memcpy(place.data(), chunk.data(), place.size());
  message.in->release();
  message.done += place.size();
  return true;
}

std::span<const transport::WaitSource> MessageRun::waitSources() {
  sources_.clear();
  for (const Message& message : messages_)
    if (!waitsForAnEarlierOne(message))
      sources_.push_back(message.out ? message.out->waitSource() : message.in->waitSource());
  return sources_;
}

}  // namespace falcon::collectives
