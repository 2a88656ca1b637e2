#include "verbs/verbs_sender.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/log.h"

namespace falcon::net {
namespace {

/// Whole ones, before the last.
std::size_t piecesBeforeLast(std::size_t bytes) {
  return bytes == 0 ? 0 : (bytes - 1) / pieceBytes;
}

}  // namespace

Result<std::unique_ptr<Connection>> VerbsSender::make(std::unique_ptr<QueuePair> pair, FileDescriptor socket,
                                                      int device, std::string peerName) {
  std::unique_ptr<VerbsSender> made(
      new VerbsSender(std::move(pair), std::move(socket), device, true, std::move(peerName)));
  auto memory = made->pair().port().registerMemory(made->inbox_.data(), sizeof made->inbox_, IBV_ACCESS_LOCAL_WRITE);
  if (!memory) return memory.error();
  made->inboxMemory_ = std::move(*memory);
  for (std::size_t place = 0; place < receives; ++place)
    if (const Status posted = made->postReceive(place); !posted) return posted.error();
  return std::unique_ptr<Connection>(std::move(made));
}

void VerbsSender::added() {
  if (progress()) static_cast<void>(post());
}

Status VerbsSender::postReceive(std::size_t place) {
  ibv_sge part = inboxMemory_->part(&inbox_[place], sizeof(Advert));
  ibv_recv_wr work{};
  work.wr_id = workId(Work::receive, place);
  work.sg_list = &part;
  work.num_sge = 1;
  const Status posted = pair().receive(work);
  return posted ? Status() : Status(fail(log::decided(posted.error())));
}

Status VerbsSender::onCompletion(const ibv_wc& completion) {
  const std::uint64_t number = numberOf(completion.wr_id);
  if (workOf(completion.wr_id) == Work::receive) {
    if (const Status taken = take(number, completion.byte_len); !taken) return taken;
    return post();
  }
  --atDevice_;
  // A message's pieces are done in their order; the last one's id is the message's number, the others' the next one's.
  if (number != firstOpen_) return post();
  VerbsRequest& message = request(number);
  if (message.isTooLong)
    return fail(
        log::decided(Error::invalidUsage("a message of {} bytes is longer than {} expects", message.room, peerName())));
  ++firstOpen_;
  done(message, message.room);
  return post();
}

Status VerbsSender::take(std::size_t place, std::uint32_t bytes) {
  const Advert advert = inbox_[place];
  if (bytes != sizeof advert || advert.number != static_cast<std::uint32_t>(advertised_) ||
      advertised_ - nextToGive_ >= adverts_.size())
    return fail(log::decided(Error::remote(
        "{} asks for message {} in {} bytes where {} was to be asked for: do both ends have the same release of {}?",
        peerName(), advert.number, bytes, advertised_, networkName)));
  adverts_[advertised_ % adverts_.size()] = advert;
  ++advertised_;
  return postReceive(place);
}

Status VerbsSender::post() {
  while (nextToGive_ < std::min(added_, advertised_) && atDevice_ < sends)
    if (const Status posted = postPiece(request(nextToGive_), adverts_[nextToGive_ % adverts_.size()]); !posted)
      return fail(log::decided(posted.error()));
  noteWait();
  return {};
}

Status VerbsSender::postPiece(VerbsRequest& message, const Advert& advert) {
  const bool isTooLong = message.isTooLong = message.room > advert.room;
  const std::size_t before = isTooLong ? 0 : piecesBeforeLast(message.room);
  const bool isLast = nextPiece_ == before;
  const std::size_t offset = nextPiece_ * pieceBytes;
  const std::size_t bytes = isTooLong ? 0 : std::min(pieceBytes, message.room - offset);
  ibv_sge part{};
  ibv_send_wr work{};
  // Of a piece that is not the last one the id is that of no open message.
  work.wr_id = workId(Work::message, isLast ? nextToGive_ : nextToGive_ + adverts_.size());
  work.opcode = isLast ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  work.send_flags = IBV_SEND_SIGNALED;
  work.wr.rdma.remote_addr = advert.address + offset;
  work.wr.rdma.rkey = advert.key;
  if (bytes > 0) {
    part = message.memory->part(message.data + offset, bytes);
    work.sg_list = &part;
    work.num_sge = 1;
  }
  LastPiece last;
  last.number = static_cast<std::uint32_t>(nextToGive_);
  last.before = isTooLong ? LastPiece::tooLong : static_cast<std::uint32_t>(before);
  if (isLast) work.imm_data = htonl(last.immediate());
  if (const Status posted = pair().send(work); !posted) return posted;
  ++atDevice_;
  nextPiece_ = isLast ? 0 : nextPiece_ + 1;
  if (isLast) ++nextToGive_;
  return {};
}

void VerbsSender::noteWait() {
  using For = WaitTimes::For;
  const For what = atDevice_ > 0 ? For::network : firstOpen_ != added_ ? For::receiver : For::nobody;
  times().become(what, clock().now());
}

}  // namespace falcon::net
