// The host engine between processes: shared memory and sockets, against the same oracle as the unit tests.
#include <cstdlib>
#include <deque>
#include <random>

#include "harness/engine_rank.h"
#include "harness/rank_buffers.h"
#include "harness/thoroughness.h"

namespace falcon::collectives {
namespace {

using test::ForkedRanks;
using test::joinCommunicator;
using test::orThrow;
using test::RankBuffers;
using test::SharedBoard;

enum class Over {
  memory,  ///< what is fastest inside a node: a shared board, and reading each other's memory
  shared,  ///< the board for what is small, connections through shared memory for the rest
  sockets
};

void useOnly(Over over) {
  setenv("NCCL_SHM_DISABLE", over == Over::sockets ? "1" : "0", 1);
  setenv("NCCL_P2P_DISABLE", over == Over::memory ? "0" : "1", 1);
}

class BetweenProcesses : public testing::TestWithParam<std::tuple<int, Over>> {
 protected:
  int ranks() const { return std::get<0>(GetParam()); }

  /// Forks the ranks; each joins communicator 0 and runs `body(rank, communicator)`.
  template <class Body>
  testing::AssertionResult everyRank(Body body) {
    SharedBoard board;
    ForkedRanks forked(ranks(), [&](Rank rank) -> std::string {
      useOnly(std::get<1>(GetParam()));
      const auto communicator = joinCommunicator(board, 0, rank, ranks());
      return body(rank, *communicator);
    });
    return forked.allRight();
  }
};

std::string check(HostCommunicator& communicator, const Call& call, bool inPlace) {
  RankBuffers buffers(call, communicator.rank(), communicator.size(), inPlace);
  const Status done = test::run(communicator, buffers.call());
  if (!done) return std::string(nameOf(call.operation)) + ": " + done.error().message();
  const auto right = buffers.check();
  return right ? "" : right.message();
}

constexpr Operation collectiveOperations[] = {Operation::allReduce, Operation::broadcast,     Operation::reduce,
                                              Operation::allGather, Operation::reduceScatter, Operation::allToAll,
                                              Operation::gather,    Operation::scatter};

TEST_P(BetweenProcesses, EveryCollectiveIsRight) {
  EXPECT_TRUE(everyRank([](Rank, HostCommunicator& communicator) -> std::string {
    const int size = communicator.size();
    // From nothing to more than the eight chunks of 128 KiB that a connection holds. The largest once only: the
    // oracle's work grows with the square of the ranks.
    const std::size_t largest = test::thorough() ? 600'001 : 300'001;
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{60'000}, largest})
      for (const Operation operation : collectiveOperations)
        for (const bool inPlace : {false, true}) {
          if (inPlace && (!test::canBeInPlace(operation) || count == largest)) continue;
          const bool hasBlocks = operation == Operation::allGather || operation == Operation::reduceScatter ||
                                 operation == Operation::allToAll || operation == Operation::gather ||
                                 operation == Operation::scatter;
          const bool rooted = operation == Operation::broadcast || operation == Operation::reduce ||
                              operation == Operation::gather || operation == Operation::scatter;
          Call call{operation, DataType::f32, ReduceOp::sum, nullptr, nullptr, count};
          if (hasBlocks) call.count = (count + size - 1) / size;
          if (rooted) call.peer = size - 1;
          const std::string wrong = check(communicator, call, inPlace);
          if (!wrong.empty()) return wrong;
        }
    return "";
  }));
}

TEST_P(BetweenProcesses, EveryTypeIsReducedRightByEveryOp) {
  EXPECT_TRUE(everyRank([](Rank, HostCommunicator& communicator) -> std::string {
    for (int type = 0; type < dataTypeCount; ++type)
      for (int op = 0; op <= reduceOpCount; ++op)
        for (const Operation operation : {Operation::allReduce, Operation::reduce, Operation::reduceScatter})
          for (const bool inPlace : {false, true}) {
            const Call call{operation,
                            static_cast<DataType>(type),
                            static_cast<ReduceOp>(op),
                            nullptr,
                            nullptr,
                            std::size_t{77},
                            operation == Operation::reduce ? 0 : -1};
            const std::string wrong = check(communicator, call, inPlace);
            if (!wrong.empty()) return wrong;
          }
    return "";
  }));
}

// What may follow what: short and long, with a root and without, alone and in groups, some ranks late.
TEST_P(BetweenProcesses, MixedSequencesAreRight) {
  EXPECT_TRUE(everyRank([](Rank rank, HostCommunicator& communicator) -> std::string {
    std::mt19937 common(4711), own(static_cast<unsigned>(rank));
    for (int round = 0; round < 60; ++round) {
      std::vector<std::unique_ptr<RankBuffers>> buffers;
      std::vector<Submission> group;
      const std::size_t calls = common() % 3 == 0 ? 1 + common() % 6 : 1;
      for (std::size_t i = 0; i < calls; ++i) {
        const Operation operation = collectiveOperations[common() % std::size(collectiveOperations)];
        const std::size_t largest[] = {8, 2000, 9000, 60'000};
        Call call{operation, DataType::u8, ReduceOp::max, nullptr, nullptr, common() % largest[common() % 4]};
        call.peer = static_cast<Rank>(common() % communicator.size());
        const bool inPlace = common() % 2 == 0 && test::canBeInPlace(operation);
        buffers.push_back(std::make_unique<RankBuffers>(call, rank, communicator.size(), inPlace));
        group.push_back({&communicator, buffers.back()->call(), nullptr});
      }
      if (own() % 16 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(own() % 3));
      orThrow(communicator.run(group), "run");
      for (const auto& each : buffers)
        if (const auto right = each->check(); !right) return right.message();
    }
    return "";
  }));
}

TEST_P(BetweenProcesses, ARootMayBeFarAheadAndUseItsBufferAgain) {
  EXPECT_TRUE(everyRank([](Rank rank, HostCommunicator& communicator) -> std::string {
    for (const std::size_t count : {10, 20'000}) {
      std::vector<int> data(count);
      if (rank != 0) std::this_thread::sleep_for(std::chrono::milliseconds(30 * rank));
      for (int round = 1; round <= 30; ++round) {
        std::fill(data.begin(), data.end(), rank == 0 ? round : 0);
        orThrow(test::run(communicator, {Operation::broadcast, DataType::i32, ReduceOp::sum, data.data(), data.data(),
                                         data.size(), 0}),
                "Broadcast");
        for (const int value : data)
          if (value != round) return fmt::format("{} in round {}", value, round);
        std::fill(data.begin(), data.end(), -1);
      }
    }
    return "";
  }));
}

TEST_P(BetweenProcesses, MembersKnowEachOther) {
  EXPECT_TRUE(everyRank([](Rank rank, HostCommunicator& communicator) -> std::string {
    for (Rank other = 0; other < communicator.size(); ++other)
      if (communicator.members()[other].extra != "extra of " + std::to_string(other)) return "extra was lost";
    if (communicator.members()[rank].pid != getpid()) return "wrong pid";
    auto ring = communicator.ringOrder();
    std::sort(ring.begin(), ring.end());
    for (Rank other = 0; other < communicator.size(); ++other)
      if (ring[other] != other) return "the ring is no permutation";
    return "";
  }));
}

TEST_P(BetweenProcesses, MessagesInARingInPairsAndToOneself) {
  EXPECT_TRUE(everyRank([](Rank rank, HostCommunicator& communicator) -> std::string {
    const int size = communicator.size();
    const Rank next = (rank + 1) % size, previous = (rank + size - 1) % size;
    for (const std::size_t count : {1, 50'000, 600'000}) {
      // Two to the right in a row, one to the left, and one to oneself; receives are submitted in another order.
      std::vector<std::vector<float>> out(4), in(4, std::vector<float>(count, -1));
      for (int message = 0; message < 4; ++message) {
        out[message].resize(count);
        for (size_t i = 0; i < count; ++i) out[message][i] = static_cast<float>(rank * 1000 + message * 100 + i % 97);
      }
      const auto send = [&](int message, Rank to) {
        return Submission{&communicator,
                          {Operation::send, DataType::f32, ReduceOp::sum, out[message].data(), nullptr, count, to},
                          nullptr};
      };
      const auto receive = [&](int message, Rank from) {
        return Submission{&communicator,
                          {Operation::receive, DataType::f32, ReduceOp::sum, nullptr, in[message].data(), count, from},
                          nullptr};
      };
      std::vector<Submission> group;
      if (size == 2) {
        // Right and left are the same: three messages in order.
        group = {receive(0, previous), receive(1, previous), receive(2, previous), receive(3, rank),
                 send(3, rank),        send(0, next),        send(1, next),        send(2, next)};
      } else {
        group = {receive(2, next), receive(0, previous), send(0, next), send(3, rank),
                 receive(3, rank), receive(1, previous), send(1, next), send(2, previous)};
      }
      orThrow(communicator.run(group), "run");
      const Rank senders[] = {previous, previous, next, rank};
      for (int message = 0; message < 4; ++message)
        for (size_t i = 0; i < count; ++i)
          if (in[message][i] != static_cast<float>(senders[message] * 1000 + message * 100 + i % 97))
            return "message " + std::to_string(message) + " is wrong at " + std::to_string(i);
    }
    return "";
  }));
}

// In every round each pair exchanges some messages of any size, which each rank submits in an order of its own.
TEST_P(BetweenProcesses, MessagesInAnyOrderWithAllOthersAtOnce) {
  EXPECT_TRUE(everyRank([](Rank rank, HostCommunicator& communicator) -> std::string {
    const int size = communicator.size();
    std::mt19937 common(21), own(static_cast<unsigned>(rank));
    constexpr std::size_t largest[] = {8, 40, 5000, 20'000, 1'200'000};
    const auto valueOf = [](int round, Rank from, Rank to, int message) {
      return static_cast<std::byte>(1 + round * 31 + from * 7 + to * 3 + message);
    };
    for (int round = 0; round < 25; ++round) {
      struct Message {
        Rank peer;
        bool sends;
        std::byte value;
        std::vector<std::byte> data;
      };
      std::deque<Message> messages;
      for (Rank from = 0; from < size; ++from)
        for (Rank to = 0; to < size; ++to)
          for (int message = static_cast<int>(common() % 4); message > 0; --message) {
            const std::size_t bytes = common() % largest[common() % std::size(largest)];
            const std::byte value = valueOf(round, from, to, message);
            if (from == to || (from != rank && to != rank)) continue;
            const bool sends = from == rank;
            messages.push_back({sends ? to : from, sends, value, std::vector(bytes, sends ? value : std::byte{0})});
          }
      // Those of one peer and direction keep their order: peers take turns as it comes.
      std::vector<std::pair<Rank, bool>> turns;
      for (const Message& message : messages) turns.emplace_back(message.peer, message.sends);
      std::shuffle(turns.begin(), turns.end(), own);
      std::vector<bool> taken(messages.size());
      std::vector<Submission> group;
      for (const auto& turn : turns)
        for (std::size_t i = 0; i < messages.size(); ++i) {
          Message& message = messages[i];
          if (taken[i] || turn != std::pair(message.peer, message.sends)) continue;
          taken[i] = true;
          group.push_back({&communicator,
                           {message.sends ? Operation::send : Operation::receive, DataType::u8, ReduceOp::sum,
                            message.sends ? message.data.data() : nullptr,
                            message.sends ? nullptr : message.data.data(), message.data.size(), message.peer},
                           nullptr});
          break;
        }
      if (own() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 1000));
      if (!group.empty()) orThrow(communicator.run(group), "run");
      for (const Message& message : messages)
        if (std::count(message.data.begin(), message.data.end(), message.value) !=
            static_cast<std::ptrdiff_t>(message.data.size()))
          return fmt::format("round {}: a message of {} bytes with {} is wrong", round, message.data.size(),
                             message.peer);
      // Along the chain, one call at a time.
      std::vector<int> token(round % 2 == 0 ? 1 : 50'000, rank == 0 ? round : -1);
      const Call receive{Operation::receive, DataType::i32, ReduceOp::sum, nullptr,
                         token.data(),       token.size(),  rank - 1};
      const Call send{Operation::send, DataType::i32, ReduceOp::sum, token.data(), nullptr, token.size(), rank + 1};
      if (rank > 0) orThrow(test::run(communicator, receive), "receive");
      if (rank + 1 < size) orThrow(test::run(communicator, send), "send");
      if (token.front() != round || token.back() != round) return "the token is wrong";
    }
    return "";
  }));
}

TEST_P(BetweenProcesses, SplitGivesWorkingHalves) {
  EXPECT_TRUE(everyRank([](Rank rank, HostCommunicator& communicator) -> std::string {
    const int size = communicator.size();
    // Ordered backwards; the last rank takes no part when there are at least three.
    const int color = size >= 3 && rank == size - 1 ? -1 : rank % 2;
    auto part = orThrow(communicator.split(color, -rank, {}), "split");
    if ((color < 0) != (part == nullptr)) return "colour and result do not match";
    if (part) {
      int members = 0, before = 0;
      for (Rank other = 0; other < size; ++other) {
        const bool outside = size >= 3 && other == size - 1;
        if (outside || other % 2 != color) continue;
        ++members;
        if (other > rank) ++before;
      }
      if (part->size() != members || part->rank() != before) return "wrong place in the part";
      const std::string wrong =
          check(*part, {Operation::allReduce, DataType::i32, ReduceOp::sum, nullptr, nullptr, 3000}, true);
      if (!wrong.empty()) return wrong;
    }
    return check(communicator, {Operation::allReduce, DataType::i32, ReduceOp::max, nullptr, nullptr, 77}, false);
  }));
}

TEST_P(BetweenProcesses, AGroupOverTwoCommunicatorsNeedsNoCommonOrder) {
  EXPECT_TRUE(everyRank([](Rank rank, HostCommunicator& first) -> std::string {
    const auto second = orThrow(first.split(0, -rank, {}), "split");
    HostCommunicator& other = *second;
    for (int round = 0; round < 5; ++round) {
      const std::size_t count = 60'000 + round;
      const Call sum{Operation::allReduce, DataType::f32, ReduceOp::sum, nullptr, nullptr, count};
      const Call gather{Operation::allGather, DataType::u8, ReduceOp::sum, nullptr, nullptr, count};
      RankBuffers one(sum, first.rank(), first.size(), false), two(gather, other.rank(), other.size(), true),
          three(sum, first.rank(), first.size(), true);
      std::vector<Submission> group;
      if (rank % 2 == 0) group = {{&first, one.call()}, {&first, three.call()}, {&other, two.call()}};
      if (rank % 2 == 1) group = {{&other, two.call()}, {&first, one.call()}, {&first, three.call()}};
      orThrow(first.run(group), "run");
      for (const RankBuffers* buffers : {&one, &two, &three})
        if (const auto right = buffers->check(); !right) return right.message();
    }
    return "";
  }));
}

std::string placeName(const testing::TestParamInfo<std::tuple<int, Over>>& info) {
  const char* names[] = {"Memory", "Shared", "Sockets"};
  return names[static_cast<int>(std::get<1>(info.param))] + std::to_string(std::get<0>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Ranks, BetweenProcesses,
                         testing::Combine(testing::ValuesIn(test::rankCounts()),
                                          testing::Values(Over::memory, Over::shared, Over::sockets)),
                         placeName);

}  // namespace
}  // namespace falcon::collectives
