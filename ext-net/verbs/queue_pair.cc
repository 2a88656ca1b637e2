#include "verbs/queue_pair.h"

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/net_parameters.h"
#include "base/random.h"
#include "base/system_error.h"
#include "verbs/gid_choice.h"

namespace falcon::net {
namespace {

constexpr std::uint32_t packetNumbers = (1u << 24) - 1;
/// Flushes of a connection that are under way share the queue with its messages.
constexpr int queueEntries = 512;
/// A receive is always posted before the peer may send for it, so nobody ever waits for one. Six tries and not seven,
/// which means for ever: if that is broken it shall be seen.
constexpr std::uint8_t receiverTries = 6;
constexpr std::uint8_t receiverPause = 12;  // 0.64 ms
constexpr std::uint8_t mostHops = 255;

}  // namespace

Result<std::unique_ptr<QueuePair>> QueuePair::make(VerbsPort& port, std::uint32_t sends, std::uint32_t receives,
                                                   QueuePair* share) {
  const auto packet = randomValue<std::uint32_t>();
  if (!packet) return log::decided(packet.error());
  std::unique_ptr<QueuePair> made(new QueuePair(port, *packet & packetNumbers));
  made->queue_ = share ? share->queue_ : port.verbs().createCompletionQueue(port.context(), queueEntries);
  made->ownsQueue_ = !share;
  if (!made->queue_)
    return log::decided(Error::system("{} has no completion queue for us: {}", port.name(), reasonOf(errno)));
  ibv_qp_init_attr how{};
  how.send_cq = how.recv_cq = made->queue_;
  how.qp_type = IBV_QPT_RC;
  how.cap.max_send_wr = sends;
  how.cap.max_recv_wr = receives;
  how.cap.max_send_sge = how.cap.max_recv_sge = 1;
  made->pair_ = port.verbs().createQueuePair(port.domain(), how);
  if (!made->pair_) return log::decided(Error::system("{} has no queue pair for us: {}", port.name(), reasonOf(errno)));
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port.number();
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  const Status begun =
      made->modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
  if (!begun) return begun.error();
  return made;
}

QueuePair::~QueuePair() {
  if (pair_) port_.verbs().destroy(pair_);
  if (pair_ || queue_) port_.forget(pair_, ownsQueue_ ? queue_ : nullptr);
  if (queue_ && ownsQueue_) port_.verbs().destroy(queue_);
}

EndFacts QueuePair::facts() const {
  EndFacts its;
  its.linkLayer = port_.attributes().link_layer;
  its.mtu = static_cast<std::uint8_t>(port_.attributes().active_mtu);
  its.lid = port_.attributes().lid;
  its.pair = pair_->qp_num;
  its.firstPacket = firstPacket_;
  its.gid = port_.gid().gid;
  return its;
}

Status QueuePair::connect(const EndFacts& other) {
  const ibv_port_attr& own = port_.attributes();
  if (other.linkLayer != own.link_layer)
    return log::decided(Error::invalidUsage("{} is {} and the other end is not: NCCL_IB_HCA chooses", port_.name(),
                                            port_.isEthernet() ? "Ethernet (RoCE)" : "InfiniBand"));
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(std::min<int>(own.active_mtu, other.mtu));
  attributes.dest_qp_num = other.pair;
  attributes.rq_psn = other.firstPacket;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = receiverPause;
  attributes.ah_attr.port_num = port_.number();
  attributes.ah_attr.sl = static_cast<std::uint8_t>(parameters::ibServiceLevel.value());
  attributes.ah_attr.dlid = other.lid;
  const bool isOtherSubnet = other.gid.global.subnet_prefix != port_.gid().gid.global.subnet_prefix;
  if (port_.isEthernet() || isOtherSubnet || (own.flags & IBV_QPF_GRH_REQUIRED)) {
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.grh.dgid = other.gid;
    attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(port_.gid().gid_index);
    attributes.ah_attr.grh.hop_limit = mostHops;
    attributes.ah_attr.grh.traffic_class = static_cast<std::uint8_t>(parameters::ibTrafficClass.value());
  }
  constexpr int toReceive = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (const Status receives = modify(attributes, toReceive, "RTR"); !receives) return receives;
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = firstPacket_;
  attributes.timeout = static_cast<std::uint8_t>(parameters::ibTimeout.value());
  attributes.retry_cnt = static_cast<std::uint8_t>(parameters::ibRetries.value());
  attributes.rnr_retry = receiverTries;
  attributes.max_rd_atomic = 1;
  constexpr int toSend =
      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  return modify(attributes, toSend, "RTS");
}

Status QueuePair::modify(ibv_qp_attr& attributes, int mask, const char* into) {
  const int number = port_.verbs().modify(pair_, attributes, mask);
  if (number == 0) return {};
  return log::decided(Error::system("{} does not bring a queue pair to {}: {}; its address is {} (GID index {})",
                                    port_.name(), into, reasonOf(number), textOf(port_.gid().gid),
                                    port_.gid().gid_index));
}

Status QueuePair::send(ibv_send_wr& work) {
  const int number = port_.verbs().postSend(pair_, work);
  return number == 0 ? Status() : Status(Error::system("{} takes nothing to send: {}", port_.name(), reasonOf(number)));
}

Status QueuePair::receive(ibv_recv_wr& work) {
  const int number = port_.verbs().postReceive(pair_, work);
  return number == 0 ? Status() : Status(Error::system("{} takes no receive: {}", port_.name(), reasonOf(number)));
}

Result<std::size_t> QueuePair::poll(std::span<ibv_wc> completions) {
  const int count = port_.verbs().poll(queue_, completions);
  if (count < 0) return Error::system("{}: the completion queue is broken", port_.name());
  return static_cast<std::size_t>(count);
}

}  // namespace falcon::net
