// Ports in memory whose links have a rate, a shaper's burst and a latency, on a clock that the test moves.
#pragma once

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "transport/ports.h"

namespace falcon::validate::test {

/// How one directed pair behaves. A token bucket, as the kernel's shapers.
struct LinkModel {
  double bytesPerSecond = 1e9;
  double burst = 0;
  Nanoseconds latency = 20us;
  bool dead = false;    ///< takes everything, delivers nothing
  bool broken = false;  ///< every use is an error
};

/// One directed connection: both ends of it.
class SimulatedConnection final : public transport::SendPort, public transport::ReceivePort {
 public:
  static constexpr std::size_t slots = 8;

  SimulatedConnection(std::size_t chunkBytes, const LinkModel& model, const Clock& clock)
      : chunkBytes_(chunkBytes), model_(model), clock_(clock), slot_(chunkBytes), tokens_(model.burst) {}

  std::size_t chunkBytes() const override { return chunkBytes_; }
  Result<std::span<std::byte>> acquire() override {
    if (model_.broken) return Error::remote("broken on purpose");
    if (inFlight_.size() >= slots) return std::span<std::byte>();
    return std::span<std::byte>(slot_);
  }
  void commit(std::size_t bytes) override {
    const auto now = clock_.now();
    const auto start = std::max(now, free_);
    tokens_ = std::min(model_.burst, tokens_ + seconds(start - counted_) * model_.bytesPerSecond);
    counted_ = start;
    const double paid = std::min(tokens_, static_cast<double>(bytes));
    tokens_ -= paid;
    free_ = start +
            Nanoseconds(static_cast<std::int64_t>((static_cast<double>(bytes) - paid) / model_.bytesPerSecond * 1e9));
    counted_ = free_;
    inFlight_.push_back({{slot_.begin(), slot_.begin() + static_cast<std::ptrdiff_t>(bytes)}, free_ + model_.latency});
    carried += bytes;
  }
  Result<bool> progress() override { return false; }
  bool flushed() const override { return true; }
  Result<bool> ready() override {
    if (model_.broken) return Error::remote("broken on purpose");
    return !model_.dead && !inFlight_.empty() && inFlight_.front().arrival <= clock_.now();
  }
  std::span<const std::byte> chunk() const override { return inFlight_.front().bytes; }
  void release() override { inFlight_.pop_front(); }
  transport::WaitSource waitSource() const override { return {}; }

  std::uint64_t carried = 0;

 private:
  struct Chunk {
    std::vector<std::byte> bytes;
    Nanoseconds arrival;
  };
  std::size_t chunkBytes_;
  const LinkModel& model_;
  const Clock& clock_;
  std::vector<std::byte> slot_;
  std::deque<Chunk> inFlight_;
  double tokens_;
  Nanoseconds free_{0};
  Nanoseconds counted_{0};
};

/// All ranks of one communicator.
class SimulatedWorld {
 public:
  explicit SimulatedWorld(int size, const Clock& clock, std::size_t chunkBytes = 128 << 10, LinkModel usual = {})
      : clock_(clock), chunkBytes_(chunkBytes), usual_(usual) {
    for (Rank rank = 0; rank < size; ++rank) ports_.push_back(std::make_unique<RankPorts>(*this, rank));
  }
  LinkModel& link(Rank from, Rank to) { return models_.try_emplace({from, to}, usual_).first->second; }
  transport::Ports& ports(Rank rank) { return *ports_[static_cast<std::size_t>(rank)]; }
  SimulatedConnection& connection(Rank from, Rank to, int channel, transport::Lane lane) {
    auto& connection = connections_[{from, to, channel, lane}];
    if (!connection) connection = std::make_unique<SimulatedConnection>(chunkBytes_, link(from, to), clock_);
    return *connection;
  }

 private:
  class RankPorts final : public transport::Ports {
   public:
    RankPorts(SimulatedWorld& world, Rank self) : world_(world), self_(self) {}
    Result<transport::SendPort*> openSend(const transport::PortKey& key) override {
      return &world_.connection(self_, key.peer, key.channel, key.lane);
    }
    Result<transport::ReceivePort*> openReceive(const transport::PortKey& key) override {
      return &world_.connection(key.peer, self_, key.channel, key.lane);
    }
    transport::Medium mediumTo(Rank) const override { return transport::Medium::socket; }

   private:
    SimulatedWorld& world_;
    Rank self_;
  };

  const Clock& clock_;
  std::size_t chunkBytes_;
  LinkModel usual_;
  std::map<std::pair<Rank, Rank>, LinkModel> models_;
  std::map<std::tuple<Rank, Rank, int, transport::Lane>, std::unique_ptr<SimulatedConnection>> connections_;
  std::vector<std::unique_ptr<transport::Ports>> ports_;
};

/// Waiting is what moves the clock.
class SimulatedWaiter final : public transport::Waiter {
 public:
  explicit SimulatedWaiter(ManualClock& clock) : clock_(clock) {}
  void wait(std::span<const transport::WaitSource>, Nanoseconds limit) override {
    clock_.advance(std::min<Nanoseconds>(limit, 10us));
  }
  void prepare() override {}

 private:
  ManualClock& clock_;
};

}  // namespace falcon::validate::test
