// What grows with the number of ranks, counted: see docs/scaling.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "harness/forked_ranks.h"
#include "harness/thoroughness.h"
#include "nccl_falcon.h"

namespace falcon {
namespace {

using test::ForkedRanks;
using test::Seconds;
using test::SharedBoard;
using SteadyClock = std::chrono::steady_clock;

/// Ends a rank with what went wrong as its report.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};
void need(bool right, const std::string& what) {
  if (!right) throw Wrong(what);
}
void ok(ncclResult_t result, const char* what) {
  need(result == ncclSuccess, std::string(what) + ": " + ncclGetLastError(nullptr));
}

std::ptrdiff_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}
int sockets() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry.path(), gone).string().starts_with("socket:");
  }
  return count;
}

/// Element `i` of what `rank` has to say; small, so that sums of many fit.
std::int32_t valueOf(int rank, std::size_t i) {
  return static_cast<std::int32_t>((static_cast<std::size_t>(rank) * 31 + i * 7) % 1000);
}

/// Buffers and expectations of one rank for every kind of collective; `count` elements a block.
class Everything {
 public:
  Everything(ncclComm_t communicator, std::size_t count) : communicator_(communicator), count_(count) {
    ok(ncclCommCount(communicator, &size_), "count");
    ok(ncclCommUserRank(communicator, &rank_), "rank");
    send_.resize(count * size_);
    for (std::size_t i = 0; i < send_.size(); ++i) send_[i] = valueOf(rank_, i);
    receive_.resize(send_.size());
    sums_.resize(send_.size());
    for (int rank = 0; rank < size_; ++rank)
      for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += valueOf(rank, i);
  }

  void run() {
    const int root = size_ - 1;
    const auto say = [&](int rank, std::size_t i) { return valueOf(rank, i); };
    const auto sum = [&](int, std::size_t i) { return sums_[i]; };
    const int* in = send_.data();
    int* out = receive_.data();
    one("AllReduce", ncclAllReduce(in, out, count_, ncclInt32, ncclSum, communicator_, nullptr), 1, sum);
    one("Broadcast", ncclBroadcast(in, out, count_, ncclInt32, root, communicator_, nullptr), 1,
        [&](int, std::size_t i) { return valueOf(root, i); });
    one("Reduce", ncclReduce(in, out, count_, ncclInt32, ncclSum, root, communicator_, nullptr), rank_ == root, sum);
    one("AllGather", ncclAllGather(in, out, count_, ncclInt32, communicator_, nullptr), size_, say);
    one("ReduceScatter", ncclReduceScatter(in, out, count_, ncclInt32, ncclSum, communicator_, nullptr), 1,
        [&](int, std::size_t i) { return sums_[rank_ * count_ + i]; });
    one("AlltoAll", ncclAlltoAll(in, out, count_, ncclInt32, communicator_, nullptr), size_,
        [&](int block, std::size_t i) { return valueOf(block, rank_ * count_ + i); });
    one("Gather", ncclGather(in, out, count_, ncclInt32, root, communicator_, nullptr), rank_ == root ? size_ : 0, say);
    one("Scatter", ncclScatter(in, out, count_, ncclInt32, root, communicator_, nullptr), 1,
        [&](int, std::size_t i) { return valueOf(root, rank_ * count_ + i); });
  }

  void messages() {
    ok(ncclGroupStart(), "GroupStart");
    for (int peer = 0; peer < size_; ++peer) {
      ok(ncclSend(send_.data(), count_, ncclInt32, peer, communicator_, nullptr), "Send");
      ok(ncclRecv(receive_.data() + peer * count_, count_, ncclInt32, peer, communicator_, nullptr), "Recv");
    }
    one("messages", ncclGroupEnd(), size_, [](int block, std::size_t i) { return valueOf(block, i); });
  }

 private:
  template <class Expected>
  void one(const char* name, ncclResult_t result, int blocks, Expected expected) {
    ok(result, name);
    for (int block = 0; block < blocks; ++block)
      for (std::size_t i = 0; i < count_; ++i)
        need(receive_[block * count_ + i] == expected(block, i), std::string(name) + ": a wrong result");
    std::ranges::fill(receive_, -1);
  }

  ncclComm_t communicator_;
  std::size_t count_;
  int size_ = 0;
  int rank_ = 0;
  std::vector<std::int32_t> send_, receive_, sums_;
};

ncclComm_t joinByBoard(const SharedBoard& board, int rank, int size) {
  ncclUniqueId id;
  if (rank == 0) {
    ok(ncclGetUniqueId(&id), "ncclGetUniqueId");
    std::memcpy(board->ids[0], &id, sizeof id);
    board->published[0].store(1);
  }
  while (board->published[0].load() == 0) usleep(500);
  std::memcpy(&id, board->ids[0], sizeof id);
  ncclComm_t communicator = nullptr;
  ok(ncclCommInitRank(&communicator, size, id, rank), "ncclCommInitRank");
  return communicator;
}

/// All ranks have come here.
void meet(const SharedBoard& board, int stage, int size) {
  board->steps[stage].fetch_add(1);
  need(board.waitFor(stage, size, Seconds(120)), "waited in vain for the other ranks");
}

TEST(Scale, SixtyFourThreadsJoinAndComputeInOneProcess) {
  const int size = test::thorough() ? 64 : 16;
  const auto start = SteadyClock::now();
  ncclUniqueId ids[3];
  for (ncclUniqueId& id : ids) ASSERT_EQ(ncclSuccess, ncclGetUniqueId(&id));
  std::atomic<int> joined{0};
  std::atomic<double> took{0};
  std::vector<std::string> wrong(size);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.emplace_back([&, rank] {
      try {
        ncclComm_t whole = nullptr, half = nullptr, most = nullptr;
        ok(ncclCommInitRankScalable(&whole, size, rank, 3, ids, nullptr), "ncclCommInitRankScalable");
        if (++joined == size) took = Seconds(SteadyClock::now() - start).count();
        while (joined < size) usleep(1000);
        // The ranks' own, the library's one, this test's.
        if (rank == 0) need(entries("/proc/self/task") <= size + 2 + (test::thorough() ? 0 : 1), "too many threads");
        Everything(whole, 17).run();
        ok(ncclCommSplit(whole, rank % 2, -rank, &half, nullptr), "ncclCommSplit");
        Everything(half, 17).run();
        int excluded[] = {1, size - 1};
        if (rank != excluded[0] && rank != excluded[1]) {
          ok(ncclCommShrink(whole, excluded, 2, &most, nullptr, NCCL_SHRINK_DEFAULT), "ncclCommShrink");
          Everything(most, 17).run();
          ok(ncclCommDestroy(most), "ncclCommDestroy");
        }
        ok(ncclCommDestroy(half), "ncclCommDestroy");
        ok(ncclCommDestroy(whole), "ncclCommDestroy");
      } catch (const Wrong& what) {
        wrong[rank] = what.what();
        joined += size;  // nobody is to wait for it
      }
    });
  for (std::thread& rank : ranks) rank.join();
  EXPECT_THAT(wrong, testing::Each(""));
  std::cout << "init of " << size << " ranks as threads: " << took.load() << " s\n";
  EXPECT_LT(took.load(), 60);  // a busy machine with sanitizers; the figure is printed above
  // Two ids were of no use: nothing waits for visitors that never come.
  for (int tries = 0; tries < 60'000 && sockets() > 0; ++tries) usleep(1000);
  EXPECT_EQ(sockets(), 0);
}

TEST(Scale, ThirtyTwoProcessesComputeEveryCollective) {
  const int size = test::thorough() ? 32 : 8;
  SharedBoard board;
  ForkedRanks ranks(size, [&](int rank) -> std::string {
    const auto start = SteadyClock::now();
    const ncclComm_t communicator = joinByBoard(board, rank, size);
    meet(board, 0, size);
    if (rank == 0)
      std::cout << "init of " << size << " ranks as processes: " << Seconds(SteadyClock::now() - start).count() << " s"
                << std::endl;
    for (const std::size_t count : {17, 5000}) Everything(communicator, count).run();
    Everything(communicator, 17).messages();
    meet(board, 1, size);
    ok(ncclCommDestroy(communicator), "ncclCommDestroy");
    return "";
  });
  EXPECT_TRUE(ranks.allRight());
}

TEST(Scale, ConnectionsAreMadeWhenFirstNeeded) {
  const int size = test::thorough() ? 24 : 8;
  SharedBoard board;
  ForkedRanks ranks(size, [&](int rank) -> std::string {
    setenv("NCCL_SHM_DISABLE", "1", 1);
    const ncclComm_t communicator = joinByBoard(board, rank, size);
    // Others act on this process's sockets until all have met, and the service thread a moment longer.
    const auto openSockets = [&](int stage, int most) {
      meet(board, stage, size);
      int count = sockets();
      for (int tries = 0; tries < 60'000 && count > most; ++tries, count = sockets()) usleep(1000);
      meet(board, stage + 1, size);
      need(count <= most, "at stage " + std::to_string(stage) + " it has " + std::to_string(count) +
                              " sockets instead of at most " + std::to_string(most));
      return count;
    };
    // The listening one, and two to rank 0; rank 0 has the other ends, too.
    const int idle = openSockets(0, 3 + (rank == 0 ? 2 * size : 0));
#ifndef __SANITIZE_THREAD__
    need(entries("/proc/self/task") == 2, "there is another thread than the caller's and the library's one");
#endif
    std::vector<float> in(1 << 17, 1), out(1 << 17);
    for (const std::size_t count : {std::size_t{1}, in.size()})
      ok(ncclAllReduce(in.data(), out.data(), count, ncclFloat, ncclSum, communicator, nullptr), "AllReduce");
    // Among few ranks small collectives have a hub, or everybody sends to everybody.
    const bool few = size <= 16;
    // Two channels, each a ring (two neighbours) and a tree (three, both ways).
    const int neighbours = openSockets(2, idle + 2 * (2 + 6) + (few && rank == 0 ? 2 * size : 0));
    Everything(communicator, 17).run();
    const int all = openSockets(4, neighbours + 2 * (2 + 6) + (few ? 4 : 2) * size);
    for (int repeat = 0; repeat < 3; ++repeat) Everything(communicator, 17).run();
    openSockets(6, all);
    ok(ncclCommDestroy(communicator), "ncclCommDestroy");
    return "";
  });
  EXPECT_TRUE(ranks.allRight());
}

/// This process's memory and its share of what it shares with peers, in bytes: half of every segment, touched or not.
/// What all ranks share counts as half, too: the figure is rather too high.
std::size_t memoryShare() {
  std::ifstream maps("/proc/self/smaps");
  std::size_t share = 0;
  bool ours = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string key;
    std::size_t kibibytes = 0;
    words >> key;
    if (key.find('-') != std::string::npos) {
      ours = line.find("/memfd:nccl-falcon") != std::string::npos;
    } else if (words >> kibibytes) {
      if (ours && key == "Size:") share += kibibytes * 512;
      if (!ours && key == "Anonymous:") share += kibibytes * 1024;
    }
  }
  return share;
}

class Memory : public testing::TestWithParam<const char*> {};

TEST_P(Memory, SixtyFourRanksOnAMachineStayUnder64MiBEach) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "sanitizers use memory of their own";
#endif
  const int size = 64;
  SharedBoard board;
  ForkedRanks ranks(size, [&](int rank) -> std::string {
    setenv(GetParam(), "1", 1);
    const ncclComm_t communicator = joinByBoard(board, rank, size);
    meet(board, 0, size);
    const std::size_t idle = memoryShare();
    meet(board, 1, size);
    // More than the connections' buffers hold: 1.5 MiB over rings, 256 KiB to each peer.
    {
      std::vector<float> in(3 << 17, 1), out(3 << 17);
      for (const std::size_t count : {std::size_t{3000}, in.size()})
        ok(ncclAllReduce(in.data(), out.data(), count, ncclFloat, ncclSum, communicator, nullptr), "AllReduce");
      Everything(communicator, 3000).run();
      ok(ncclGroupStart(), "GroupStart");
      for (int peer = 0; peer < size; ++peer) {
        ok(ncclSend(in.data(), 1 << 16, ncclFloat, peer, communicator, nullptr), "Send");
        ok(ncclRecv(out.data(), 1 << 16, ncclFloat, peer, communicator, nullptr), "Recv");
      }
      ok(ncclGroupEnd(), "GroupEnd");
    }
    meet(board, 2, size);
    const std::size_t used = memoryShare();
    if (rank == 0 || rank == size / 2)
      std::cout << "rank " << rank << ": " << (idle >> 10) << " KiB idle, " << (used >> 10)
                << " KiB after all collectives and messages to all" << std::endl;
    meet(board, 3, size);
    need(used < (64 << 20), "the rank has " + std::to_string(used) + " bytes");
    ok(ncclCommDestroy(communicator), "ncclCommDestroy");
    return "";
  });
  EXPECT_TRUE(ranks.allRight(Seconds(300)));
}

// Memory shared by two ranks each, and sockets: the two ways that need buffers.
INSTANTIATE_TEST_SUITE_P(Ways, Memory, testing::Values("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"),
                         [](const auto& way) { return std::string(way.param).substr(5, 3); });

}  // namespace
}  // namespace falcon
