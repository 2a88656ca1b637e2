// A communicator of the host engine that moves nothing: its ring can be changed, and its ports never connect.
#pragma once

#include <atomic>
#include <list>
#include <stdexcept>

#include "collectives/host_communicator.h"
#include "collectives/ring_schedule.h"
#include "transport/connecting_port.h"
#include "unit/control/idle_membership.h"

namespace falcon::test {

/// Counts how often somebody looked whether there is something to do.
class UnconnectedPorts final : public transport::Ports {
 public:
  Result<transport::SendPort*> openSend(const transport::PortKey&) override {
    ++opened_;
    return &sends_.emplace_back(chunkBytes);
  }
  Result<transport::ReceivePort*> openReceive(const transport::PortKey&) override {
    ++opened_;
    return &receives_.emplace_back(chunkBytes);
  }
  transport::Medium mediumTo(Rank) const override { return transport::Medium::socket; }
  int opened() const { return opened_; }

 private:
  static constexpr std::size_t chunkBytes = 4096;
  std::atomic<int> opened_{0};
  std::list<transport::ConnectingSendPort> sends_;
  std::list<transport::ConnectingReceivePort> receives_;
};

class IdleHost final : public Idle<collectives::HostCommunicator> {
 public:
  explicit IdleHost(CommunicatorId id) : id_(id) {}

  CommunicatorId id() const override { return id_; }
  int size() const override { return 3; }

  Status run(std::span<const Submission>) override { return nothing(); }
  Status run(const Call&) override { return nothing(); }
  Status check(std::span<const Submission>) override { return nothing(); }
  Result<double> estimate(std::span<const Submission>) override { return nothing(); }
  Status makeOp(DataType, PreMultiplier&) override { return nothing(); }
  Status destroyOp(const PreMultiplier&) override { return nothing(); }
  Result<void*> registerBuffer(void*, std::size_t) override { return nothing(); }
  Status deregisterBuffer(void*) override { return nothing(); }
  Result<void*> registerWindow(void*, std::size_t, int) override { return nothing(); }
  Status deregisterWindow(void*) override { return nothing(); }
  Result<void*> addressOf(void*) override { return nothing(); }
  void missWindow() override {}
  Result<std::uint64_t> numberOf(const char*, const void*) const override { return nothing(); }
  Status revoke() override { return nothing(); }
  Status finalize() override { return nothing(); }
  Status asyncError() const override { return {}; }
  Status end() override { return {}; }
  Result<std::unique_ptr<HostCommunicator>> split(int, int, const collectives::CommunicatorWish&) override {
    return nothing();
  }
  Result<std::unique_ptr<HostCommunicator>> shrink(std::span<const Rank>, bool,
                                                   const collectives::CommunicatorWish&) override {
    return nothing();
  }

  const std::vector<collectives::MemberInfo>& members() const override { return members_; }
  bootstrap::CommunicatorNetwork& network() override { throw std::logic_error("it has no network"); }
  const std::shared_ptr<transport::Ports>& ports() override { return ports_; }
  collectives::OneSided& oneSided() override { throw std::logic_error("no one-sided messages"); }
  std::vector<Rank> ringOrder() const override { return rings.current(); }
  Status proposeRing(std::uint64_t from, std::vector<Rank> order) override {
    return rings.propose(from, std::move(order));
  }
  void decideRing(std::uint64_t from, bool commit) override { rings.decide(from, commit); }

  collectives::RingSchedule rings{{0, 1, 2}};

 private:
  static Error nothing() { return Error::invalidUsage("this communicator is idle"); }

  const CommunicatorId id_;
  const std::vector<collectives::MemberInfo> members_;
  const std::shared_ptr<transport::Ports> ports_ = std::make_shared<UnconnectedPorts>();
};

}  // namespace falcon::test
