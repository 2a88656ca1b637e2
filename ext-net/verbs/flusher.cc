#include "verbs/flusher.h"

#include "core/network.h"
#include "verbs/message_wire.h"

namespace falcon::net {

Result<std::unique_ptr<Flusher>> Flusher::make(QueuePair& share) {
  std::unique_ptr<Flusher> made(new Flusher);
  auto memory = share.port().registerMemory(&made->to_, sizeof made->to_, IBV_ACCESS_LOCAL_WRITE);
  if (!memory) return memory.error();
  made->memory_ = std::move(*memory);
  auto pair = QueuePair::make(share.port(), transport::net::mostRequests, 1, &share);
  if (!pair) return pair.error();
  made->pair_ = std::move(*pair);
  if (const Status connected = made->pair_->connect(made->pair_->facts()); !connected) return connected.error();
  return made;
}

Status Flusher::read(const void* from, const VerbsMemory& memory, std::uint64_t number) {
  ibv_sge part = memory_->part(&to_, sizeof to_);
  ibv_send_wr work{};
  work.wr_id = workId(Work::flush, number);
  work.opcode = IBV_WR_RDMA_READ;
  work.send_flags = IBV_SEND_SIGNALED;
  work.sg_list = &part;
  work.num_sge = 1;
  work.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(from);
  work.wr.rdma.rkey = memory.remoteKey();
  return pair_->send(work);
}

}  // namespace falcon::net
