// A reliable connection (RC) of verbs: a queue pair and where its completions come.
#pragma once

#include <memory>
#include <span>

#include "base/result.h"
#include "verbs/end_facts.h"
#include "verbs/verbs_port.h"

namespace falcon::net {

// How long a peer may say nothing before work for it fails. A packet that is not acknowledged within
//
//     T = 4.096 us * 2^NCCL_IB_TIMEOUT
//
// is sent again, NCCL_IB_RETRY_CNT times. A device may take up to 4 T for each (InfiniBand's specification, 9.7.6.1.3),
// so work fails between (retries + 1) T and 4 (retries + 1) T. With 15 and 7: T = 0.134 s, 1.07 s to 4.3 s: below the 5
// s in which a failure is to be known. NCCL's own default, 20, gives 34 s to 137 s.

/// Used by one thread at a time.
class QueuePair {
 public:
  /// @param sends, receives  how many may be posted at a time
  /// @param share            its completions come to that one's queue, which outlives it; null: to one of its own
  /// Error (system): the device has none left.
  static Result<std::unique_ptr<QueuePair>> make(VerbsPort& port, std::uint32_t sends, std::uint32_t receives,
                                                 QueuePair* share = nullptr);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  VerbsPort& port() const { return port_; }
  /// For the other end.
  EndFacts facts() const;
  /// From now on it sends to the other end and takes what that sends. Error (system): the device refuses;
  /// (invalidUsage): the ends do not fit together.
  Status connect(const EndFacts& other);

  /// Error (system): it is refused.
  Status send(ibv_send_wr& work);
  Status receive(ibv_recv_wr& work);
  /// Completions that have come, at most as many as there is room for. Error (system): the queue is broken.
  Result<std::size_t> poll(std::span<ibv_wc> completions);
  /// What ends it though no work fails (VerbsPort::trouble).
  Status trouble() { return port_.trouble(pair_, queue_); }

 private:
  QueuePair(VerbsPort& port, std::uint32_t firstPacket) : port_(port), firstPacket_(firstPacket) {}
  Status modify(ibv_qp_attr& attributes, int mask, const char* into);

  VerbsPort& port_;
  const std::uint32_t firstPacket_;
  bool ownsQueue_ = false;
  ibv_cq* queue_ = nullptr;
  ibv_qp* pair_ = nullptr;
};

}  // namespace falcon::net
