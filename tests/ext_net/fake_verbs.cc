#include "ext_net/fake_verbs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace falcon::net::test {

struct FakeVerbs::Context : ibv_context {
  FakeDevice* device = nullptr;
  std::deque<AsyncEvent> events;
};

struct FakeVerbs::Domain : ibv_pd {};

struct FakeVerbs::Memory : ibv_mr {
  std::uintptr_t begin = 0;
  int access = 0;
  bool isDmaBuffer = false;
};

struct FakeVerbs::Queue : ibv_cq {
  struct Entry {
    ibv_wc completion;
    std::uint32_t pair;
    bool isSend;
  };
  std::deque<Entry> entries;
  std::size_t room = 0;
  bool hasOverrun = false;
};

struct FakeVerbs::Pair : ibv_qp {
  struct Posted {
    ibv_send_wr work;
    ibv_sge part;
  };
  ibv_qp_attr toReceive{}, toSend{};
  std::uint8_t port = 1;
  ibv_qp_cap room{};
  std::uint32_t sends = 0, receives = 0;  // posted and not yet polled
  std::uint32_t everSent = 0;
  std::deque<Posted> posted;
  std::deque<std::pair<ibv_recv_wr, ibv_sge>> receivesPosted;
  FakeDevice& device() const { return *static_cast<Context*>(context)->device; }
};

void FakeVerbs::fail(const std::string& call, int number, int count, int after) {
  const std::lock_guard lock(mutex_);
  failing_[call] = {number, count, after};
}

bool FakeVerbs::fails(const std::string& call, int& number) {
  const auto found = failing_.find(call);
  if (found == failing_.end()) return false;
  Failing& its = found->second;
  if (its.after > 0) return --its.after, false;
  if (its.count == 0) return false;
  if (its.count > 0) --its.count;
  number = errno = its.number;
  return true;
}

void FakeVerbs::hold(bool isHeld) {
  const std::lock_guard lock(mutex_);
  isHeld_ = isHeld;
}

void FakeVerbs::disconnect() {
  const std::lock_guard lock(mutex_);
  isDisconnected_ = true;
}

void FakeVerbs::raise(const std::string& device, ibv_event_type type, int port) {
  const std::lock_guard lock(mutex_);
  for (Context* context : contexts_)
    if (context->device->name == device) context->events.push_back({type, nullptr, port});
}

void FakeVerbs::raiseOf(std::uint32_t pair, ibv_event_type type) {
  const std::lock_guard lock(mutex_);
  Pair* const its = pairs_.at(pair);
  static_cast<Context*>(its->context)->events.push_back({type, static_cast<ibv_qp*>(its), 0});
}

int FakeVerbs::alive() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(contexts_.size() + pairs_.size() + memories_.size()) + domains_ + queues_;
}

std::vector<ibv_qp_attr> FakeVerbs::broughtTo(ibv_qp_state state) const {
  const std::lock_guard lock(mutex_);
  std::vector<ibv_qp_attr> all;
  for (const auto& [to, attributes] : modified_)
    if (to == state) all.push_back(attributes);
  return all;
}

std::vector<std::uint32_t> FakeVerbs::pairs() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint32_t> all;
  for (const auto& [number, pair] : pairs_) all.push_back(number);
  return all;
}

std::uint32_t FakeVerbs::sendsOf(std::uint32_t pair) const {
  const std::lock_guard lock(mutex_);
  return pairs_.at(pair)->everSent;
}

int FakeVerbs::deviceNames(std::vector<std::string>& names) {
  const std::lock_guard lock(mutex_);
  int number = 0;
  if (fails("deviceNames", number)) return number;
  for (const FakeDevice& device : devices_) names.push_back(device.name);
  return 0;
}

ibv_context* FakeVerbs::open(const std::string& name) {
  const std::lock_guard lock(mutex_);
  int number = 0;
  if (fails("open", number)) return nullptr;
  for (FakeDevice& device : devices_) {
    if (device.name != name) continue;
    auto* context = new Context{};
    context->device = &device;
    contexts_.push_back(context);
    return context;
  }
  errno = ENODEV;
  return nullptr;
}

int FakeVerbs::close(ibv_context* context) {
  const std::lock_guard lock(mutex_);
  std::erase(contexts_, static_cast<Context*>(context));
  delete static_cast<Context*>(context);
  return 0;
}

int FakeVerbs::query(ibv_context* context, ibv_device_attr& device) {
  const std::lock_guard lock(mutex_);
  int number = 0;
  if (fails("queryDevice", number)) return number;
  device = static_cast<Context*>(context)->device->attributes;
  return 0;
}

int FakeVerbs::query(ibv_context* context, std::uint8_t port, ibv_port_attr& attributes) {
  const std::lock_guard lock(mutex_);
  int number = 0;
  if (fails("queryPort", number)) return number;
  attributes = static_cast<Context*>(context)->device->ports.at(port - 1u);
  return 0;
}

int FakeVerbs::query(ibv_context* context, std::uint8_t, std::uint32_t index, ibv_gid_entry& gid) {
  const std::lock_guard lock(mutex_);
  for (const ibv_gid_entry& entry : static_cast<Context*>(context)->device->gids)
    if (entry.gid_index == index) return gid = entry, 0;
  return ENODATA;
}

bool FakeVerbs::nextEvent(ibv_context* context, AsyncEvent& event) {
  const std::lock_guard lock(mutex_);
  auto& events = static_cast<Context*>(context)->events;
  if (events.empty()) return false;
  event = events.front();
  events.pop_front();
  return true;
}

ibv_pd* FakeVerbs::allocateDomain(ibv_context* context) {
  const std::lock_guard lock(mutex_);
  int number = 0;
  if (fails("allocateDomain", number)) return nullptr;
  ++domains_;
  auto* domain = new Domain{};
  domain->context = context;
  return domain;
}

int FakeVerbs::destroy(ibv_pd* domain) {
  const std::lock_guard lock(mutex_);
  --domains_;
  delete static_cast<Domain*>(domain);
  return 0;
}

ibv_mr* FakeVerbs::remember(ibv_pd* domain, std::uintptr_t begin, std::size_t bytes, int access, bool isDmaBuffer) {
  auto* memory = new Memory{};
  memory->context = domain->context;
  memory->pd = domain;
  memory->begin = begin;
  memory->length = bytes;
  memory->access = access;
  memory->isDmaBuffer = isDmaBuffer;
  memory->lkey = memory->rkey = ++lastNumber_;
  memories_[memory->lkey] = memory;
  return memory;
}

ibv_mr* FakeVerbs::registerMemory(ibv_pd* domain, void* data, std::size_t bytes, int access) {
  const std::lock_guard lock(mutex_);
  int number = 0;
  if (fails("registerMemory", number)) return nullptr;
  return remember(domain, reinterpret_cast<std::uintptr_t>(data), bytes, access, false);
}

ibv_mr* FakeVerbs::registerDmaBuffer(ibv_pd* domain, std::uint64_t, std::size_t bytes, std::uint64_t address, int file,
                                     int access) {
  const std::lock_guard lock(mutex_);
  int number = 0;
  if (fails("registerDmaBuffer", number)) return nullptr;
  if (file < 0) return errno = EBADF, nullptr;
  return remember(domain, address, bytes, access, true);
}

int FakeVerbs::destroy(ibv_mr* memory) {
  const std::lock_guard lock(mutex_);
  memories_.erase(memory->lkey);
  delete static_cast<Memory*>(memory);
  return 0;
}

ibv_cq* FakeVerbs::createCompletionQueue(ibv_context* context, int entries) {
  const std::lock_guard lock(mutex_);
  int number = 0;
  if (fails("createCompletionQueue", number)) return nullptr;
  ++queues_;
  auto* queue = new Queue{};
  queue->context = context;
  queue->room = static_cast<std::size_t>(entries);
  return queue;
}

int FakeVerbs::destroy(ibv_cq* queue) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, pair] : pairs_)
    if (pair->send_cq == queue) return EBUSY;
  --queues_;
  delete static_cast<Queue*>(queue);
  return 0;
}

ibv_qp* FakeVerbs::createQueuePair(ibv_pd* domain, ibv_qp_init_attr& attributes) {
  const std::lock_guard lock(mutex_);
  int number = 0;
  if (fails("createQueuePair", number)) return nullptr;
  auto* pair = new Pair{};
  pair->context = domain->context;
  pair->pd = domain;
  pair->send_cq = attributes.send_cq;
  pair->recv_cq = attributes.recv_cq;
  pair->room = attributes.cap;
  pair->state = IBV_QPS_RESET;
  pair->qp_num = ++lastNumber_;
  pairs_[pair->qp_num] = pair;
  return pair;
}

int FakeVerbs::modify(ibv_qp* given, ibv_qp_attr& attributes, int mask) {
  const std::lock_guard lock(mutex_);
  int number = 0;
  if (fails("modify", number)) return number;
  auto& pair = static_cast<Pair&>(*given);
  if (!(mask & IBV_QP_STATE) || attributes.qp_state != pair.state + 1) return EINVAL;
  if (attributes.qp_state == IBV_QPS_INIT) pair.port = attributes.port_num;
  if (attributes.qp_state == IBV_QPS_RTR) pair.toReceive = attributes;
  if (attributes.qp_state == IBV_QPS_RTS) pair.toSend = attributes;
  pair.state = attributes.qp_state;
  modified_.emplace_back(attributes.qp_state, attributes);
  return 0;
}

int FakeVerbs::destroy(ibv_qp* given) {
  const std::lock_guard lock(mutex_);
  auto* pair = static_cast<Pair*>(given);
  auto& entries = static_cast<Queue*>(pair->send_cq)->entries;
  std::erase_if(entries, [&](const Queue::Entry& entry) { return entry.pair == pair->qp_num; });
  pairs_.erase(pair->qp_num);
  delete pair;
  return 0;
}

int FakeVerbs::postSend(ibv_qp* given, ibv_send_wr& work) {
  const std::lock_guard lock(mutex_);
  int number = 0;
  if (fails("postSend", number)) return number;
  auto& pair = static_cast<Pair&>(*given);
  if (pair.state != IBV_QPS_RTS && pair.state != IBV_QPS_ERR) return EINVAL;
  if (pair.sends == pair.room.max_send_wr) return ENOMEM;
  ++pair.sends;
  ++pair.everSent;
  pair.posted.push_back({work, work.num_sge > 0 ? work.sg_list[0] : ibv_sge{}});
  if (pair.state == IBV_QPS_ERR) breakDown(pair, IBV_WC_WR_FLUSH_ERR);
  return 0;
}

int FakeVerbs::postReceive(ibv_qp* given, ibv_recv_wr& work) {
  const std::lock_guard lock(mutex_);
  int number = 0;
  if (fails("postReceive", number)) return number;
  auto& pair = static_cast<Pair&>(*given);
  if (pair.state == IBV_QPS_RESET) return EINVAL;
  if (pair.receives == pair.room.max_recv_wr) return ENOMEM;
  ++pair.receives;
  pair.receivesPosted.emplace_back(work, work.num_sge > 0 ? work.sg_list[0] : ibv_sge{});
  return 0;
}

int FakeVerbs::poll(ibv_cq* given, std::span<ibv_wc> completions) {
  const std::lock_guard lock(mutex_);
  int number = 0;
  if (fails("poll", number)) return -1;
  if (!isHeld_) run();
  auto& queue = static_cast<Queue&>(*given);
  if (queue.hasOverrun) return -1;
  int count = 0;
  for (; count < static_cast<int>(completions.size()) && !queue.entries.empty(); ++count) {
    const Queue::Entry& entry = queue.entries.front();
    completions[static_cast<std::size_t>(count)] = entry.completion;
    Pair& pair = *pairs_.at(entry.pair);
    --(entry.isSend ? pair.sends : pair.receives);
    queue.entries.pop_front();
  }
  return count;
}

void FakeVerbs::run() {
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, pair] : pairs_) numbers.push_back(number);
  std::shuffle(numbers.begin(), numbers.end(), random_);
  for (const std::uint32_t number : numbers)
    for (auto turns = random_() % 4; turns > 0 && advance(*pairs_.at(number)); --turns) {
    }
}

bool FakeVerbs::advance(Pair& pair) {
  if (pair.posted.empty() || pair.state != IBV_QPS_RTS) return false;
  const auto [work, part] = pair.posted.front();
  Pair* const peer = peerOf(pair);
  const ibv_wc_status status = peer ? carryOut(pair, *peer, work, part) : IBV_WC_RETRY_EXC_ERR;
  if (status != IBV_WC_SUCCESS) return breakDown(pair, status), false;
  pair.posted.pop_front();
  ibv_wc completion{};
  completion.wr_id = work.wr_id;
  completion.qp_num = pair.qp_num;
  if (work.send_flags & IBV_SEND_SIGNALED)
    complete(static_cast<Queue&>(*pair.send_cq), pair, true, completion);
  else
    --pair.sends;
  return true;
}

FakeVerbs::Pair* FakeVerbs::peerOf(const Pair& pair) {
  if (isDisconnected_) return nullptr;
  const auto found = pairs_.find(pair.toReceive.dest_qp_num);
  if (found == pairs_.end()) return nullptr;
  Pair& peer = *found->second;
  const ibv_ah_attr& path = pair.toReceive.ah_attr;
  const auto isThere = [&](const ibv_gid_entry& entry) {
    return std::memcmp(entry.gid.raw, path.grh.dgid.raw, sizeof entry.gid.raw) == 0;
  };
  const auto& gids = peer.device().gids;
  const bool isReached = path.is_global ? std::any_of(gids.begin(), gids.end(), isThere)
                                        : path.dlid != 0 && path.dlid == peer.device().ports.at(peer.port - 1u).lid;
  const bool takes = peer.state == IBV_QPS_RTR || peer.state == IBV_QPS_RTS;
  const bool knowsUs = peer.toReceive.dest_qp_num == pair.qp_num && peer.toReceive.rq_psn == pair.toSend.sq_psn &&
                       peer.toReceive.path_mtu == pair.toReceive.path_mtu;
  return isReached && takes && knowsUs ? &peer : nullptr;
}

FakeVerbs::Memory* FakeVerbs::find(std::uint32_t key, std::uint64_t address, std::size_t bytes, int access) {
  const auto found = memories_.find(key);
  if (found == memories_.end()) return nullptr;
  Memory& its = *found->second;
  const bool isInside = address >= its.begin && bytes <= its.length && address - its.begin <= its.length - bytes;
  return isInside && (its.access & access) == access ? &its : nullptr;
}

void FakeVerbs::put(Memory& memory, std::uint64_t to, const std::byte* from, std::size_t bytes) {
  auto* const place = reinterpret_cast<std::byte*>(to);
  if (memory.isDmaBuffer)
    late_.push_back({place, {from, from + bytes}});
  else
    std::memcpy(place, from, bytes);
}

ibv_wc_status FakeVerbs::carryOut(Pair& pair, Pair& peer, const ibv_send_wr& work, const ibv_sge& part) {
  const bool reads = work.opcode == IBV_WR_RDMA_READ, sends = work.opcode == IBV_WR_SEND;
  const bool takesReceive = sends || work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const std::size_t bytes = part.length;
  const auto* own = reinterpret_cast<const std::byte*>(part.addr);
  Memory* const local = bytes > 0 ? find(part.lkey, part.addr, bytes, reads ? IBV_ACCESS_LOCAL_WRITE : 0) : nullptr;
  if (bytes > 0 && !local) return IBV_WC_LOC_PROT_ERR;
  if (takesReceive && peer.receivesPosted.empty()) return IBV_WC_RNR_RETRY_EXC_ERR;
  if (!sends && bytes > 0) {
    const int right = reads ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
    Memory* const remote = find(work.wr.rdma.rkey, work.wr.rdma.remote_addr, bytes, right);
    if (!remote) {
      breakDown(peer, IBV_WC_WR_FLUSH_ERR);
      return IBV_WC_REM_ACCESS_ERR;
    }
    if (reads) {
      for (const Late& late : late_) std::memcpy(late.to, late.bytes.data(), late.bytes.size());
      late_.clear();
      put(*local, part.addr, reinterpret_cast<const std::byte*>(work.wr.rdma.remote_addr), bytes);
    } else {
      put(*remote, work.wr.rdma.remote_addr, own, bytes);
    }
  }
  if (!takesReceive) return IBV_WC_SUCCESS;
  const auto [receive, room] = peer.receivesPosted.front();
  if (sends) {
    if (bytes > room.length) return IBV_WC_REM_INV_REQ_ERR;
    Memory* const remote = find(room.lkey, room.addr, room.length, IBV_ACCESS_LOCAL_WRITE);
    if (!remote) return IBV_WC_REM_OP_ERR;
    put(*remote, room.addr, own, bytes);
  }
  peer.receivesPosted.pop_front();
  ibv_wc completion{};
  completion.wr_id = receive.wr_id;
  completion.opcode = sends ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
  completion.byte_len = part.length;
  completion.imm_data = work.imm_data;
  completion.qp_num = peer.qp_num;
  static_cast<void>(pair);
  complete(static_cast<Queue&>(*peer.recv_cq), peer, false, completion);
  return IBV_WC_SUCCESS;
}

void FakeVerbs::complete(Queue& queue, Pair& pair, bool isSend, const ibv_wc& completion) {
  queue.hasOverrun = queue.hasOverrun || queue.entries.size() == queue.room;
  queue.entries.push_back({completion, pair.qp_num, isSend});
}

void FakeVerbs::breakDown(Pair& pair, ibv_wc_status status) {
  pair.state = IBV_QPS_ERR;
  const auto flush = [&](std::uint64_t id, bool isSend) {
    ibv_wc completion{};
    completion.wr_id = id;
    completion.status = std::exchange(status, IBV_WC_WR_FLUSH_ERR);
    completion.qp_num = pair.qp_num;
    complete(static_cast<Queue&>(*pair.send_cq), pair, isSend, completion);
  };
  for (const auto& posted : pair.posted) flush(posted.work.wr_id, true);
  for (const auto& [receive, room] : pair.receivesPosted) flush(receive.wr_id, false);
  pair.posted.clear();
  pair.receivesPosted.clear();
}

}  // namespace falcon::net::test
