// The life of communicators: made and destroyed many times, by threads, with rings replaced on the way.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/engine_rank.h"
#include "harness/rank_buffers.h"
#include "harness/thoroughness.h"
#include "transport/local_ports.h"

namespace falcon::collectives {
namespace {

using test::ForkedRanks;
using test::joinCommunicator;
using test::orThrow;
using test::RankBuffers;
using test::SharedBoard;

std::string check(HostCommunicator& communicator, const Call& call) {
  RankBuffers buffers(call, communicator.rank(), communicator.size(), false);
  const Status done = test::run(communicator, buffers.call());
  if (!done) return std::string(nameOf(call.operation)) + ": " + done.error().message();
  const auto right = buffers.check();
  return right ? "" : right.message();
}

Call allReduce(std::size_t count) {
  return {Operation::allReduce, DataType::f32, ReduceOp::sum, nullptr, nullptr, count};
}

int entriesOf(const char* folder) {
  return static_cast<int>(
      std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

/// What a process holds that could leak. Mappings are counted by name: the heap grows as it likes.
struct Holdings {
  int descriptors = entriesOf("/proc/self/fd");
  int threads = entriesOf("/proc/self/task");
  int sharedMappings = countShared();
  bool operator==(const Holdings&) const = default;

  static int countShared() {
    std::ifstream maps("/proc/self/maps");
    int count = 0;
    for (std::string line; std::getline(maps, line);) count += line.find("rw-s") != std::string::npos;
    return count;
  }
};

TEST(Life, RoundsOfInitAndDestroyLeakNothing) {
  constexpr int ranks = 3;
  const int rounds = test::thorough() ? 20 : 7;
  for (const char* disabled : {"0", "1"}) {
    SharedBoard board;
    ForkedRanks forked(ranks, [&](Rank rank) -> std::string {
      setenv("NCCL_SHM_DISABLE", disabled, 1);
      // Keeps the reactor's thread and the doorbell over all rounds, as another communicator would.
      const auto reactor = orThrow(transport::processReactor(), "processReactor");
      const auto peer = orThrow(transport::localPeer(*reactor), "localPeer");
      std::optional<Holdings> early;
      for (int round = 0; round < rounds; ++round) {
        // A board number again only when everyone has read it.
        const int number = round % 16;
        {
          auto communicator = joinCommunicator(board, number, rank, ranks);
          auto part = orThrow(communicator->split(0, -rank, {}), "split");
          std::string wrong = check(*communicator, allReduce(1000));
          if (wrong.empty()) wrong = check(*part, allReduce(300'000));
          if (!wrong.empty()) return wrong;
          // Destroyed in another order on every rank.
          if (rank % 2 == 0) communicator.reset();
        }
        board.reach(rank, round + 1);
        for (Rank other = 0; other < ranks; ++other)
          if (!board.waitFor(other, round + 1)) return "another rank does not come";
        if (rank == 0) board->published[number].store(0);
        board.reach(rank + ranks, round + 1);
        for (Rank other = 0; other < ranks; ++other)
          if (!board.waitFor(other + ranks, round + 1)) return "another rank does not come";
        if (round == 4) early.emplace();
      }
      // Sockets are closed by the reactor's thread, perhaps a moment later.
      for (int attempt = 0; attempt < 3000; ++attempt) {
        const Holdings now;
        if (now.descriptors <= early->descriptors && now.threads <= early->threads &&
            now.sharedMappings <= early->sharedMappings)
          return "";
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      const Holdings now;
      return fmt::format("after {} rounds {} descriptors, {} threads, {} mappings; after 5: {}, {}, {}", rounds,
                         now.descriptors, now.threads, now.sharedMappings, early->descriptors, early->threads,
                         early->sharedMappings);
    });
    EXPECT_TRUE(forked.allRight());
  }
}

TEST(Life, RanksMayBeThreadsOfOneProcess) {
  SharedBoard board;
  ForkedRanks forked(1, [&](int) -> std::string {
    constexpr int ranks = 4;
    std::vector<std::string> reports(ranks);
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        try {
          const auto communicator = joinCommunicator(board, 0, rank, ranks);
          for (const std::size_t count : {1, 5000, 400'000})
            if (reports[rank].empty()) reports[rank] = check(*communicator, allReduce(count));
        } catch (const std::exception& exception) {
          reports[rank] = exception.what();
        }
      });
    for (auto& thread : threads) thread.join();
    for (const std::string& report : reports)
      if (!report.empty()) return report;
    return "";
  });
  EXPECT_TRUE(forked.allRight());
}

TEST(Life, ARankMayLeaveAsSoonAsItsOwnPartIsDone) {
  // The root of a Broadcast is done first, and its process ends while the others still receive.
  for (const char* disabled : {"0", "1"}) {
    SharedBoard board;
    ForkedRanks forked(4, [&](Rank rank) -> std::string {
      setenv("NCCL_SHM_DISABLE", disabled, 1);
      const auto communicator = joinCommunicator(board, 0, rank, 4);
      return check(*communicator, {Operation::broadcast, DataType::u8, ReduceOp::sum, nullptr, nullptr, 900'000, 1});
    });
    EXPECT_TRUE(forked.allRight());
  }
}

TEST(Life, ARingIsReplacedAtTheAgreedCollective) {
  constexpr int ranks = 4;
  constexpr std::size_t bytes = 60'000;
  SharedBoard board;
  ForkedRanks forked(ranks, [&](Rank rank) -> std::string {
    // Only what goes through connections follows the ring: so does who prefers an algorithm of theirs.
    setenv("NCCL_ALGO", "ring", 1);
    const auto communicator = joinCommunicator(board, 0, rank, ranks);
    const Call broadcast{Operation::broadcast, DataType::u8, ReduceOp::sum, nullptr, nullptr, bytes, 0};
    for (int i = 0; i < 3; ++i)
      if (const std::string wrong = check(*communicator, broadcast); !wrong.empty()) return wrong;
    const std::vector<Rank> order = {0, 2, 1, 3};
    const std::uint64_t from = communicator->nextCollective() + 1;
    orThrow(communicator->proposeRing(from, order), "proposeRing");
    if (const std::string wrong = check(*communicator, broadcast); !wrong.empty()) return wrong;
    if (communicator->ringOrder() == order) return "in force before it was decided";
    // The next one waits until someone decides, here another thread, the slower the higher the rank.
    std::thread decider([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30 * (rank + 1)));
      board.reach(rank, 1);
      communicator->decideRing(from, true);
    });
    const auto before = communicator->ports()->bytesSentTo(2);
    const std::string wrong = check(*communicator, broadcast);
    const bool waited = board->steps[rank].load() == 1;
    decider.join();
    if (!wrong.empty()) return wrong;
    if (!waited) return "did not wait for the decision";
    if (communicator->ringOrder() != order) return "the new ring is not in force";
    if (rank == 0 && communicator->ports()->bytesSentTo(2) != before + bytes) return "the bytes took another way";
    return "";
  });
  EXPECT_TRUE(forked.allRight());
}

}  // namespace
}  // namespace falcon::collectives
