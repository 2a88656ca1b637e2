#include "verbs/verbs_receiver.h"

#include <arpa/inet.h>

#include "base/log.h"

namespace falcon::net {

Result<std::unique_ptr<Connection>> VerbsReceiver::make(std::unique_ptr<QueuePair> pair, FileDescriptor socket,
                                                        int device, std::string peerName) {
  std::unique_ptr<VerbsReceiver> made(
      new VerbsReceiver(std::move(pair), std::move(socket), device, false, std::move(peerName)));
  auto memory = made->pair().port().registerMemory(made->outbox_.data(), sizeof made->outbox_, 0);
  if (!memory) return memory.error();
  made->outboxMemory_ = std::move(*memory);
  for (std::uint32_t i = 0; i < receives; ++i)
    if (const Status posted = made->postReceive(); !posted) return posted.error();
  return std::unique_ptr<Connection>(std::move(made));
}

VerbsReceiver::~VerbsReceiver() {
  flusher_.reset();  // its completions come to the queue that goes now
  cut();
}

Status VerbsReceiver::postReceive() {
  ibv_recv_wr work{};  // of no bytes: only the immediate number comes here
  work.wr_id = workId(Work::receive, 0);
  const Status posted = pair().receive(work);
  return posted ? Status() : Status(fail(log::decided(posted.error())));
}

void VerbsReceiver::added() {
  const std::uint64_t number = added_ - 1;
  const VerbsRequest& its = request(number);
  Advert& advert = outbox_[number % outbox_.size()];
  advert = {.address = reinterpret_cast<std::uintptr_t>(its.data),
            .room = its.room,
            .key = its.memory ? its.memory->remoteKey() : 0,
            .number = static_cast<std::uint32_t>(number)};
  ibv_sge part = outboxMemory_->part(&advert, sizeof advert);
  ibv_send_wr work{};
  work.wr_id = workId(Work::advert, number);
  work.opcode = IBV_WR_SEND;
  work.send_flags = IBV_SEND_SIGNALED;
  work.sg_list = &part;
  work.num_sge = 1;
  if (const Status posted = pair().send(work); !posted) fail(log::decided(posted.error()));
}

Status VerbsReceiver::onCompletion(const ibv_wc& completion) {
  switch (workOf(completion.wr_id)) {
    case Work::advert:
      ++advertsDone_;
      return {};
    case Work::flush: {
      VerbsRequest& flush = flushes_[numberOf(completion.wr_id) % flushes_.size()];
      done(flush, flush.room);
      return {};
    }
    default:
      return take(completion);
  }
}

Status VerbsReceiver::take(const ibv_wc& completion) {
  const auto wrong = [&](std::string_view what) {
    return Status(fail(log::decided(
        Error::remote("{} sent what is no message of this connection: {}. Do both ends have the same release of {}?",
                      peerName(), what, networkName))));
  };
  if (const Status posted = postReceive(); !posted) return posted;
  if (completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM) return wrong("it is not written");
  const LastPiece last = LastPiece::of(ntohl(completion.imm_data));
  if (firstOpen_ == added_ || last.number != firstOpen_ % LastPiece::numbers) return wrong("nobody has asked for it");
  VerbsRequest& message = request(firstOpen_);
  if (last.before == LastPiece::tooLong)
    return fail(log::decided(Error::invalidUsage("{} has a message that is longer than the {} bytes that were expected",
                                                 peerName(), message.room)));
  const std::size_t bytes = last.before * pieceBytes + completion.byte_len;
  if (bytes > message.room) return wrong("it is longer than its room");
  ++firstOpen_;
  done(message, bytes);
  return {};
}

Result<Request*> VerbsReceiver::flush(void* data, std::size_t bytes, void* mark) {
  const auto* memory = static_cast<const VerbsMemory*>(mark);
  if (bytes == 0 || !memory || !memory->isOfDevice()) return nullptr;
  if (const Status lies = check(data, bytes, memory); !lies) return lies.error();
  if (!flusher_) {
    auto made = Flusher::make(pair());
    if (!made) return fail(made.error());
    flusher_ = std::move(*made);
  }
  VerbsRequest& slot = flushes_[flushesAdded_ % flushes_.size()];
  // No request would say that there is nothing to wait for. NCCL has at most 32 requests in all, so there is a place.
  if (slot.isUsed)
    return log::decided(Error::internal("{} flushes are under way already", transport::net::mostRequests));
  slot = {};
  slot.connection = this;
  slot.room = bytes;
  slot.isFlush = slot.isUsed = true;
  if (const Status posted = flusher_->read(data, *memory, flushesAdded_); !posted)
    return fail(log::decided(posted.error()));
  ++flushesAdded_;
  return &slot;
}

}  // namespace falcon::net
