// Ranks that are threads of the test.
#pragma once

#include <barrier>
#include <map>
#include <thread>

#include "reshape/exchange.h"

namespace falcon::reshape {

/// What the ranks of one test share.
struct MeetingPlace {
  explicit MeetingPlace(int ranks) : all(ranks), said(static_cast<std::size_t>(ranks)), sent(said.size()) {}
  std::barrier<> all;
  std::vector<std::string> said;
  std::vector<std::vector<std::span<std::byte>>> sent;
};

class ThreadExchange final : public Exchange {
 public:
  ThreadExchange(MeetingPlace& place, Rank rank, bool broadcasts)
      : place_(place), rank_(rank), broadcasts_(broadcasts) {}

  Result<std::vector<std::string>> allGather(std::string_view mine) override {
    place_.said[static_cast<std::size_t>(rank_)] = mine;
    place_.all.arrive_and_wait();
    auto all = place_.said;
    place_.all.arrive_and_wait();
    return all;
  }
  bool canBroadcast() const override { return broadcasts_; }
  Status broadcast(int, Rank root, std::span<const std::span<std::byte>> buffers) override {
    place_.sent[static_cast<std::size_t>(rank_)].assign(buffers.begin(), buffers.end());
    place_.all.arrive_and_wait();
    const auto& from = place_.sent[static_cast<std::size_t>(root)];
    for (std::size_t i = 0; root != rank_ && i < buffers.size(); ++i)
      std::copy(from[i].begin(), from[i].end(), buffers[i].begin());
    place_.all.arrive_and_wait();
    return {};
  }

 private:
  MeetingPlace& place_;
  const Rank rank_;
  const bool broadcasts_;
};

/// Runs `work(rank, exchange)` on a thread for each rank.
template <class Work>
void asRanks(int ranks, Work work, bool broadcasts = true) {
  MeetingPlace place(ranks);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      ThreadExchange exchange(place, rank, broadcasts);
      work(rank, exchange);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace falcon::reshape
