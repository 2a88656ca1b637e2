// The calls of libibverbs that we use, so that tests can put a network of their own in its place.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace falcon::net {

/// What a device says unasked.
struct AsyncEvent {
  ibv_event_type type{};
  const void* element = nullptr;  ///< the queue pair or completion queue that it is about; null: the device or a port
  int port = 0;
};

/// Results are libibverbs': an error number, 0 where all is well; or a pointer, null with errno set. Thread-safe.
class Verbs {
 public:
  virtual ~Verbs() = default;

  /// Before all else. Error (system), not logged: the library is not there, or lacks a function.
  virtual Status load() = 0;
  virtual int deviceNames(std::vector<std::string>& names) = 0;
  virtual ibv_context* open(const std::string& name) = 0;
  virtual int close(ibv_context* context) = 0;
  virtual int query(ibv_context* context, ibv_device_attr& device) = 0;
  virtual int query(ibv_context* context, std::uint8_t port, ibv_port_attr& attributes) = 0;
  virtual int query(ibv_context* context, std::uint8_t port, std::uint32_t index, ibv_gid_entry& gid) = 0;
  /// The next event, which counts as acknowledged; false: there is none. Never blocks.
  virtual bool nextEvent(ibv_context* context, AsyncEvent& event) = 0;

  virtual ibv_pd* allocateDomain(ibv_context* context) = 0;
  virtual int destroy(ibv_pd* domain) = 0;
  virtual ibv_mr* registerMemory(ibv_pd* domain, void* data, std::size_t bytes, int access) = 0;
  virtual ibv_mr* registerDmaBuffer(ibv_pd* domain, std::uint64_t offset, std::size_t bytes, std::uint64_t address,
                                    int file, int access) = 0;
  virtual int destroy(ibv_mr* memory) = 0;
  virtual ibv_cq* createCompletionQueue(ibv_context* context, int entries) = 0;
  virtual int destroy(ibv_cq* queue) = 0;
  virtual ibv_qp* createQueuePair(ibv_pd* domain, ibv_qp_init_attr& attributes) = 0;
  virtual int modify(ibv_qp* pair, ibv_qp_attr& attributes, int mask) = 0;
  virtual int destroy(ibv_qp* pair) = 0;

  virtual int postSend(ibv_qp* pair, ibv_send_wr& work) = 0;
  virtual int postReceive(ibv_qp* pair, ibv_recv_wr& work) = 0;
  /// How many completions were put there; below 0: the queue is broken.
  virtual int poll(ibv_cq* queue, std::span<ibv_wc> completions) = 0;
};

}  // namespace falcon::net
