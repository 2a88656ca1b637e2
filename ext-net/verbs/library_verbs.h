// The verbs of the libibverbs that is installed here.
#pragma once

#include <mutex>
#include <optional>

#include "verbs/verbs.h"

namespace falcon::net {

/// Opens libibverbs.so.1 by dlopen() and does not link it, so that the plugin loads, and says why it cannot be used,
/// where the library is missing; and so that a package with the plugin wants it nowhere. Functions are taken by their
/// versions: under a plain name dlsym() may find one of an older ABI.
class LibraryVerbs final : public Verbs {
 public:
  Status load() override;
  int deviceNames(std::vector<std::string>& names) override;
  ibv_context* open(const std::string& name) override;
  int close(ibv_context* context) override;
  int query(ibv_context* context, ibv_device_attr& device) override;
  int query(ibv_context* context, std::uint8_t port, ibv_port_attr& attributes) override;
  int query(ibv_context* context, std::uint8_t port, std::uint32_t index, ibv_gid_entry& gid) override;
  bool nextEvent(ibv_context* context, AsyncEvent& event) override;
  ibv_pd* allocateDomain(ibv_context* context) override;
  int destroy(ibv_pd* domain) override;
  ibv_mr* registerMemory(ibv_pd* domain, void* data, std::size_t bytes, int access) override;
  ibv_mr* registerDmaBuffer(ibv_pd* domain, std::uint64_t offset, std::size_t bytes, std::uint64_t address, int file,
                            int access) override;
  int destroy(ibv_mr* memory) override;
  ibv_cq* createCompletionQueue(ibv_context* context, int entries) override;
  int destroy(ibv_cq* queue) override;
  ibv_qp* createQueuePair(ibv_pd* domain, ibv_qp_init_attr& attributes) override;
  int modify(ibv_qp* pair, ibv_qp_attr& attributes, int mask) override;
  int destroy(ibv_qp* pair) override;
  int postSend(ibv_qp* pair, ibv_send_wr& work) override;
  int postReceive(ibv_qp* pair, ibv_recv_wr& work) override;
  int poll(ibv_cq* queue, std::span<ibv_wc> completions) override;

 private:
  /// Members have the types of the functions that the header declares.
  struct Functions {
    decltype(&ibv_fork_init) forkInit;
    decltype(&ibv_get_device_list) getDeviceList;
    decltype(&ibv_free_device_list) freeDeviceList;
    decltype(&ibv_get_device_name) getDeviceName;
    decltype(&ibv_open_device) openDevice;
    decltype(&ibv_close_device) closeDevice;
    decltype(&ibv_query_device) queryDevice;
    decltype(&ibv_query_port) queryPort;
    decltype(&_ibv_query_gid_ex) queryGid;
    decltype(&ibv_get_async_event) getAsyncEvent;
    decltype(&ibv_ack_async_event) ackAsyncEvent;
    decltype(&ibv_alloc_pd) allocPd;
    decltype(&ibv_dealloc_pd) deallocPd;
    decltype(&ibv_reg_mr) regMr;
    decltype(&ibv_reg_dmabuf_mr) regDmabufMr;  // null: the library is older than 34
    decltype(&ibv_dereg_mr) deregMr;
    decltype(&ibv_create_cq) createCq;
    decltype(&ibv_destroy_cq) destroyCq;
    decltype(&ibv_create_qp) createQp;
    decltype(&ibv_modify_qp) modifyQp;
    decltype(&ibv_destroy_qp) destroyQp;
  };

  Status find();

  std::once_flag once_;
  std::optional<Error> failure_;
  Functions its_{};
};

}  // namespace falcon::net
