#include "verbs/library_verbs.h"

#include <dlfcn.h>
#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace falcon::net {
namespace {

constexpr const char* library = "libibverbs.so.1";

/// What of an event's union is about a queue.
const void* elementOf(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      return event.element.cq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_PATH_MIG_ERR:
      return event.element.qp;
    default:
      return nullptr;
  }
}

bool isOfPort(ibv_event_type type) {
  return type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_PORT_ACTIVE;
}

}  // namespace

Status LibraryVerbs::load() {
  std::call_once(once_, [&] {
    if (const Status found = find(); !found) failure_ = found.error();
  });
  return failure_ ? Status(*failure_) : Status();
}

Status LibraryVerbs::find() {
  void* const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!opened) return Error::system("libibverbs (rdma-core) cannot be loaded: {}", dlerror());
  const char* missing = nullptr;
  const auto want = [&](const char* name, const char* version, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlvsym(opened, name, version));
    if (!function) missing = name;
  };
  constexpr const char* stable = "IBVERBS_1.1";
  want("ibv_fork_init", stable, its_.forkInit);
  want("ibv_get_device_list", stable, its_.getDeviceList);
  want("ibv_free_device_list", stable, its_.freeDeviceList);
  want("ibv_get_device_name", stable, its_.getDeviceName);
  want("ibv_open_device", stable, its_.openDevice);
  want("ibv_close_device", stable, its_.closeDevice);
  want("ibv_query_device", stable, its_.queryDevice);
  want("ibv_query_port", stable, its_.queryPort);
  want("_ibv_query_gid_ex", "IBVERBS_1.11", its_.queryGid);
  want("ibv_get_async_event", stable, its_.getAsyncEvent);
  want("ibv_ack_async_event", stable, its_.ackAsyncEvent);
  want("ibv_alloc_pd", stable, its_.allocPd);
  want("ibv_dealloc_pd", stable, its_.deallocPd);
  want("ibv_reg_mr", stable, its_.regMr);
  want("ibv_dereg_mr", stable, its_.deregMr);
  want("ibv_create_cq", stable, its_.createCq);
  want("ibv_destroy_cq", stable, its_.destroyCq);
  want("ibv_create_qp", stable, its_.createQp);
  want("ibv_modify_qp", stable, its_.modifyQp);
  want("ibv_destroy_qp", stable, its_.destroyQp);
  if (missing) return Error::system("{} has no {}: rdma-core 32 or later is needed", library, missing);
  its_.regDmabufMr = reinterpret_cast<decltype(its_.regDmabufMr)>(dlvsym(opened, "ibv_reg_dmabuf_mr", "IBVERBS_1.12"));
  // So that a child that is forked (a data loader) does not take pages away that the device writes to. Where the kernel
  // sees to that itself, it does nothing.
  its_.forkInit();
  return {};
}

int LibraryVerbs::deviceNames(std::vector<std::string>& names) {
  int count = 0;
  const std::unique_ptr<ibv_device*, decltype(its_.freeDeviceList)> list(its_.getDeviceList(&count),
                                                                         its_.freeDeviceList);
  if (!list) return errno;
  for (int i = 0; i < count; ++i) names.emplace_back(its_.getDeviceName(list.get()[i]));
  return 0;
}

ibv_context* LibraryVerbs::open(const std::string& name) {
  int count = 0;
  const std::unique_ptr<ibv_device*, decltype(its_.freeDeviceList)> list(its_.getDeviceList(&count),
                                                                         its_.freeDeviceList);
  if (!list) return nullptr;
  for (int i = 0; i < count; ++i) {
    if (name != its_.getDeviceName(list.get()[i])) continue;
    ibv_context* const context = its_.openDevice(list.get()[i]);
    if (context) fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK);
    return context;
  }
  errno = ENODEV;
  return nullptr;
}

int LibraryVerbs::close(ibv_context* context) {
  return its_.closeDevice(context);
}

int LibraryVerbs::query(ibv_context* context, ibv_device_attr& device) {
  return its_.queryDevice(context, &device);
}

int LibraryVerbs::query(ibv_context* context, std::uint8_t port, ibv_port_attr& attributes) {
  attributes = {};
  // As the header's macro does, which would want the library at link time.
  if (verbs_context* const extended = verbs_get_ctx_op(context, query_port))
    return extended->query_port(context, port, &attributes, sizeof attributes);
  return its_.queryPort(context, port, reinterpret_cast<_compat_ibv_port_attr*>(&attributes));
}

int LibraryVerbs::query(ibv_context* context, std::uint8_t port, std::uint32_t index, ibv_gid_entry& gid) {
  return its_.queryGid(context, port, index, &gid, 0, sizeof gid);
}

bool LibraryVerbs::nextEvent(ibv_context* context, AsyncEvent& event) {
  ibv_async_event its{};
  if (its_.getAsyncEvent(context, &its) != 0) return false;
  event = {its.event_type, elementOf(its), isOfPort(its.event_type) ? its.element.port_num : 0};
  its_.ackAsyncEvent(&its);
  return true;
}

ibv_pd* LibraryVerbs::allocateDomain(ibv_context* context) {
  return its_.allocPd(context);
}

int LibraryVerbs::destroy(ibv_pd* domain) {
  return its_.deallocPd(domain);
}

ibv_mr* LibraryVerbs::registerMemory(ibv_pd* domain, void* data, std::size_t bytes, int access) {
  return (its_.regMr)(domain, data, bytes, access);
}

ibv_mr* LibraryVerbs::registerDmaBuffer(ibv_pd* domain, std::uint64_t offset, std::size_t bytes, std::uint64_t address,
                                        int file, int access) {
  if (its_.regDmabufMr) return its_.regDmabufMr(domain, offset, bytes, address, file, access);
  errno = EOPNOTSUPP;
  return nullptr;
}

int LibraryVerbs::destroy(ibv_mr* memory) {
  return its_.deregMr(memory);
}

ibv_cq* LibraryVerbs::createCompletionQueue(ibv_context* context, int entries) {
  return its_.createCq(context, entries, nullptr, nullptr, 0);
}

int LibraryVerbs::destroy(ibv_cq* queue) {
  return its_.destroyCq(queue);
}

ibv_qp* LibraryVerbs::createQueuePair(ibv_pd* domain, ibv_qp_init_attr& attributes) {
  return its_.createQp(domain, &attributes);
}

int LibraryVerbs::modify(ibv_qp* pair, ibv_qp_attr& attributes, int mask) {
  return its_.modifyQp(pair, &attributes, mask);
}

int LibraryVerbs::destroy(ibv_qp* pair) {
  return its_.destroyQp(pair);
}

// These three go by the context's table: the header has them inline.
int LibraryVerbs::postSend(ibv_qp* pair, ibv_send_wr& work) {
  ibv_send_wr* refused = nullptr;
  return ibv_post_send(pair, &work, &refused);
}

int LibraryVerbs::postReceive(ibv_qp* pair, ibv_recv_wr& work) {
  ibv_recv_wr* refused = nullptr;
  return ibv_post_recv(pair, &work, &refused);
}

int LibraryVerbs::poll(ibv_cq* queue, std::span<ibv_wc> completions) {
  return ibv_poll_cq(queue, static_cast<int>(completions.size()), completions.data());
}

}  // namespace falcon::net
