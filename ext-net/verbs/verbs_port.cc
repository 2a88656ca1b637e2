#include "verbs/verbs_port.h"

#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/net_parameters.h"
#include "base/parameters.h"
#include "base/system_error.h"
#include "verbs/gid_choice.h"

namespace falcon::net {
namespace {

constexpr Nanoseconds lookInterval = 100ms;

/// Whether the driver knows DMA buffers at all: with no such file it says so of the file, else of the call.
bool knowsDmaBuffers(Verbs& verbs, ibv_pd* domain) {
  errno = 0;
  if (ibv_mr* const mr = verbs.registerDmaBuffer(domain, 0, 0, 0, -1, 0)) return verbs.destroy(mr), true;
  return errno != EOPNOTSUPP && errno != EPROTONOSUPPORT && errno != ENOSYS;
}

Error notRegistered(const std::string& port, std::size_t bytes, int number) {
  return log::decided(
      Error::system("{} does not take {} bytes of memory: {}{}", port, bytes, reasonOf(number),
                    number == ENOMEM ? "; `ulimit -l` (memory that may be locked) should be unlimited" : ""));
}

}  // namespace

Result<std::unique_ptr<VerbsPort>> VerbsPort::open(Verbs& verbs, const std::string& device, int port,
                                                   const Clock& clock) {
  ibv_context* const context = verbs.open(device);
  if (!context) return log::decided(Error::system("the device {} cannot be opened: {}", device, reasonOf(errno)));
  std::unique_ptr<VerbsPort> made(new VerbsPort(verbs, context, device, port, clock));
  if (const int number = verbs.query(context, made->deviceAttributes_); number != 0)
    return log::decided(Error::system("the device {} does not say what it is: {}", device, reasonOf(number)));
  if (const int number = verbs.query(context, made->number_, made->attributes_); number != 0)
    return log::decided(Error::system("{} does not say what it is: {}", made->name(), reasonOf(number)));
  const auto layer = made->attributes_.link_layer;
  const bool isKnown = layer == IBV_LINK_LAYER_ETHERNET || layer == IBV_LINK_LAYER_INFINIBAND;
  if (made->attributes_.state != IBV_PORT_ACTIVE || !isKnown) {
    log::info("{} is not used: {}", made->name(), isKnown ? "its port is not active" : "it has no link layer of ours");
    return std::unique_ptr<VerbsPort>();
  }
  made->domain_ = verbs.allocateDomain(context);
  if (!made->domain_)
    return log::decided(Error::system("{} has no protection domain for us: {}", made->name(), reasonOf(errno)));
  if (const Status chosen = made->chooseGid(); !chosen) return chosen.error();
  made->reachesDmaBuffers_ = knowsDmaBuffers(verbs, made->domain_);
  return made;
}

VerbsPort::~VerbsPort() {
  if (domain_) verbs_.destroy(domain_);
  verbs_.close(context_);
}

std::string VerbsPort::name() const {
  return fmt::format("{}:{}", device_, number_);
}

Status VerbsPort::chooseGid() {
  std::vector<ibv_gid_entry> gids;
  for (int index = 0; index < attributes_.gid_tbl_len; ++index) {
    ibv_gid_entry entry{};
    if (verbs_.query(context_, number_, static_cast<std::uint32_t>(index), entry) != 0 || isZero(entry.gid)) continue;
    entry.gid_index = static_cast<std::uint32_t>(index);
    gids.push_back(entry);
  }
  const std::int64_t wanted = parameters::ibGidIndex.value();
  std::optional<std::uint32_t> index = falcon::net::chooseGid(gids);
  if (!isEthernet()) index = 0;
  if (wanted >= 0) index = static_cast<std::uint32_t>(wanted);
  for (const ibv_gid_entry& entry : gids)
    if (entry.gid_index == index) return gid_ = entry, Status();
  if (wanted >= 0)
    return log::decided(Error::invalidUsage("{}={}: {} has no address (GID) there; `ibv_devinfo -v` lists them",
                                            parameters::ibGidIndex.name(), wanted, name()));
  if (!isEthernet()) return {};  // a LID does as well
  return log::decided(Error::system("{} has no address (GID): has its interface an IP address?", name()));
}

Result<std::unique_ptr<VerbsMemory>> VerbsPort::registerMemory(void* data, std::size_t bytes, int access) const {
  ibv_mr* const mr = verbs_.registerMemory(domain_, data, bytes, access);
  if (!mr) return notRegistered(name(), bytes, errno);
  return std::make_unique<VerbsMemory>(verbs_, mr, data, bytes, false);
}

Result<std::unique_ptr<VerbsMemory>> VerbsPort::registerDmaBuffer(void* data, std::size_t bytes, std::uint64_t offset,
                                                                  int file, int access) const {
  ibv_mr* const mr =
      verbs_.registerDmaBuffer(domain_, offset, bytes, reinterpret_cast<std::uintptr_t>(data), file, access);
  if (!mr) return notRegistered(name(), bytes, errno);
  return std::make_unique<VerbsMemory>(verbs_, mr, data, bytes, true);
}

void VerbsPort::takeEvents(Nanoseconds now) {
  AsyncEvent event;
  while (verbs_.nextEvent(context_, event)) {
    switch (event.type) {
      case IBV_EVENT_DEVICE_FATAL:
        hasFailed_ = true;
        break;
      case IBV_EVENT_PORT_ERR:
        if (event.port != number_) break;
        log::warn("{}: its port is down", name());
        if (!downSince_) downSince_ = now;
        break;
      case IBV_EVENT_PORT_ACTIVE:
        if (event.port != number_) break;
        if (downSince_) log::warn("{}: its port is up again", name());
        downSince_.reset();
        break;
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
      case IBV_EVENT_PATH_MIG_ERR:
      case IBV_EVENT_CQ_ERR:
        broken_.insert(event.element);
        break;
      default:  // of what changes nothing for us: addresses, partitions, the first message
        break;
    }
  }
}

Status VerbsPort::trouble(const ibv_qp* pair, const ibv_cq* queue) {
  const Nanoseconds now = clock_.now();
  const std::lock_guard lock(mutex_);
  if (!lastLook_ || now - *lastLook_ >= lookInterval) {
    lastLook_ = now;
    takeEvents(now);
  }
  if (hasFailed_) return Error::system("the device {} has failed, or is gone", device_);
  const Nanoseconds limit = parameters::deathTimeout.value();
  if (downSince_ && now - *downSince_ >= limit)
    return Error::system("{}: its port has been down for {:.0f} s ({})", name(), seconds(limit),
                         parameters::deathTimeout.name());
  if (broken_.contains(pair) || broken_.contains(queue))
    return Error::remote("{} says that the queue pair is broken", name());
  return {};
}

void VerbsPort::forget(const ibv_qp* pair, const ibv_cq* queue) {
  const std::lock_guard lock(mutex_);
  broken_.erase(pair);
  broken_.erase(queue);
}

}  // namespace falcon::net
