// Connections in memory between ranks of one thread, with a will of their own: credit, arrival and flushing are drawn
// from a seed, so that every order of events comes up and every run can be repeated.
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "transport/ports.h"

namespace falcon::test {

class Fabric {
 public:
  /// @param stubbornness  chance that something possible does not happen yet, 0 to below 1
  Fabric(int ranks, std::size_t chunkBytes, unsigned seed, double stubbornness = 0.3)
      : chunkBytes_(chunkBytes), random_(seed), stubbornness_(stubbornness) {
    for (Rank rank = 0; rank < ranks; ++rank) ends_.push_back(std::make_unique<End>(*this, rank));
  }

  transport::Ports& portsOf(Rank rank) { return *ends_[rank]; }
  /// Chunks that were sent and never received.
  std::size_t leftOver() const {
    std::size_t chunks = 0;
    for (const auto& [key, line] : lines_) chunks += line->sent.size() + line->arrived.size();
    return chunks;
  }
  /// From now on everything over this line fails with `error`.
  void breakLine(Rank from, Rank to, const Error& error) {
    for (auto& [key, line] : lines_)
      if (key.from == from && key.to == to) line->failure = error;
  }
  /// Bytes that went from one rank to another, on all lanes and channels.
  std::size_t bytes(Rank from, Rank to) const {
    std::size_t sum = 0;
    for (const auto& [key, line] : lines_)
      if (key.from == from && key.to == to) sum += line->bytes;
    return sum;
  }

 private:
  struct LineKey {
    Rank from, to;
    int channel;
    transport::Lane lane;
    auto operator<=>(const LineKey&) const = default;
  };

  struct Line final : transport::SendPort, transport::ReceivePort {
    explicit Line(Fabric& owner) : fabric(owner), buffer(owner.chunkBytes_) {}

    std::size_t chunkBytes() const override { return fabric.chunkBytes_; }
    Result<std::span<std::byte>> acquire() override {
      if (failure) return *failure;
      const bool full = sent.size() + arrived.size() >= slots;
      if (!acquired) acquired = !full && !fabric.refuses();
      return acquired ? std::span<std::byte>(buffer) : std::span<std::byte>();
    }
    void commit(std::size_t size) override {
      sent.emplace_back(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(size));
      bytes += size;
      std::memset(buffer.data(), 0xee, buffer.size());
      acquired = false;
    }
    Result<bool> progress() override {
      if (failure) return *failure;
      if (sent.empty() || fabric.refuses()) return false;
      arrived.push_back(std::move(sent.front()));
      sent.pop_front();
      return true;
    }
    bool flushed() const override { return sent.empty(); }
    Result<bool> ready() override {
      if (failure) return *failure;
      if (!shown) shown = !arrived.empty() && !fabric.refuses();
      return shown;
    }
    std::span<const std::byte> chunk() const override { return arrived.front(); }
    void release() override {
      arrived.pop_front();
      shown = false;
    }
    transport::WaitSource waitSource() const override { return {.kind = transport::WaitSource::Kind::doorbell}; }

    static constexpr std::size_t slots = 8;
    Fabric& fabric;
    std::vector<std::byte> buffer;
    std::deque<std::vector<std::byte>> sent;  // inside the sender's process
    std::deque<std::vector<std::byte>> arrived;
    bool acquired = false;
    bool shown = false;
    std::size_t bytes = 0;
    std::optional<Error> failure;
  };

  struct End final : transport::Ports {
    End(Fabric& owner, Rank self) : fabric(owner), rank(self) {}
    Result<transport::SendPort*> openSend(const transport::PortKey& key) override {
      return &fabric.line({rank, key.peer, key.channel, key.lane});
    }
    Result<transport::ReceivePort*> openReceive(const transport::PortKey& key) override {
      return &fabric.line({key.peer, rank, key.channel, key.lane});
    }
    transport::Medium mediumTo(Rank) const override { return transport::Medium::sharedMemory; }
    std::uint64_t bytesSentTo(Rank peer) const override { return fabric.bytes(rank, peer); }
    Fabric& fabric;
    Rank rank;
  };

  Line& line(const LineKey& key) {
    auto& made = lines_[key];
    if (!made) made = std::make_unique<Line>(*this);
    return *made;
  }
  bool refuses() { return std::uniform_real_distribution<>(0, 1)(random_) < stubbornness_; }

  const std::size_t chunkBytes_;
  std::mt19937 random_;
  const double stubbornness_;
  std::map<LineKey, std::unique_ptr<Line>> lines_;
  std::vector<std::unique_ptr<End>> ends_;
};

}  // namespace falcon::test
