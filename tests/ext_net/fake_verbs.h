// Verbs of devices that there are not: queue pairs of one process that move bytes between each other.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>

#include "ext_net/fake_devices.h"
#include "verbs/verbs.h"

namespace falcon::net::test {

/// As strict as a device: keys, rights and bounds of memory are checked, queues have the room that was asked for, queue
/// pairs go through their states, and nothing comes where the addresses, numbers or first packets do not fit. The work
/// of a queue pair is done in its order; that of several in any. What is written to a DMA buffer is seen only after it
/// is read. Thread-safe.
class FakeVerbs final : public Verbs {
 public:
  explicit FakeVerbs(std::vector<FakeDevice> devices, unsigned seed = 1)
      : devices_(std::move(devices)), random_(seed) {}

  std::vector<FakeDevice>& devices() { return devices_; }
  /// So many calls of that member fail with that error number, after others that go well; a count below 0: all.
  void fail(const std::string& call, int number, int count = 1, int after = 0);
  /// While held, nothing that was posted is done.
  void hold(bool isHeld);
  /// Nothing is acknowledged any more: what is posted fails, as it does after all tries.
  void disconnect();
  /// To whoever has opened the device.
  void raise(const std::string& device, ibv_event_type type, int port = 1);
  /// About the queue pair of that number.
  void raiseOf(std::uint32_t pair, ibv_event_type type);
  /// Domains, memory, queues, queue pairs and contexts that are not destroyed.
  int alive() const;
  /// Of all that were brought there, in their order.
  std::vector<ibv_qp_attr> broughtTo(ibv_qp_state state) const;
  std::vector<std::uint32_t> pairs() const;
  /// How much was posted for that queue pair to send, ever.
  std::uint32_t sendsOf(std::uint32_t pair) const;

  Status load() override { return {}; }
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
  struct Context;
  struct Domain;
  struct Memory;
  struct Queue;
  struct Pair;
  struct Late {
    std::byte* to;
    std::vector<std::byte> bytes;
  };

  // With mutex_ held.
  bool fails(const std::string& call, int& number);
  ibv_mr* remember(ibv_pd* domain, std::uintptr_t begin, std::size_t bytes, int access, bool isDmaBuffer);
  void run();
  /// One thing; false: there is none.
  bool advance(Pair& pair);
  ibv_wc_status carryOut(Pair& pair, Pair& peer, const ibv_send_wr& work, const ibv_sge& part);
  /// Null: no connection.
  Pair* peerOf(const Pair& pair);
  Memory* find(std::uint32_t key, std::uint64_t address, std::size_t bytes, int access);
  void put(Memory& memory, std::uint64_t to, const std::byte* from, std::size_t bytes);
  void complete(Queue& queue, Pair& pair, bool isSend, const ibv_wc& completion);
  void breakDown(Pair& pair, ibv_wc_status status);

  mutable std::mutex mutex_;
  std::vector<FakeDevice> devices_;
  std::mt19937 random_;
  struct Failing {
    int number, count, after;
  };
  std::map<std::string, Failing> failing_;
  bool isHeld_ = false, isDisconnected_ = false;
  std::vector<Context*> contexts_;
  std::map<std::uint32_t, Pair*> pairs_;
  std::map<std::uint32_t, Memory*> memories_;
  std::vector<std::pair<ibv_qp_state, ibv_qp_attr>> modified_;
  std::vector<Late> late_;
  std::uint32_t lastNumber_ = 0x100;
  int domains_ = 0, queues_ = 0;
};

}  // namespace falcon::net::test
