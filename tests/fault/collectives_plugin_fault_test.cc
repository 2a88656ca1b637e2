// Net plugins that lose a connection, or are not there on every rank.
#include <cstdlib>

#include "harness/engine_rank.h"
#include "harness/rank_buffers.h"

namespace falcon::collectives {
namespace {

using test::ForkedRanks;
using test::joinCommunicator;
using test::RankBuffers;
using test::Seconds;
using test::SharedBoard;

constexpr int ranks = 3;

void usePlugin(int version) {
  setenv("NCCL_SHM_DISABLE", "1", 1);
  setenv("NCCL_NET_PLUGIN", (FALCON_FAKE_NETS "/libnccl-net-fake" + std::to_string(version) + ".so").c_str(), 1);
}

class LostConnection : public testing::TestWithParam<std::tuple<int, const char*>> {};

TEST_P(LostConnection, IsARemoteErrorOnAllRanksWithinFiveSeconds) {
  const auto [version, fault] = GetParam();
  SharedBoard board;
  ForkedRanks forked(ranks, [&, version = version, fault = fault](Rank rank) -> std::string {
    usePlugin(version);
    if (rank == 1) setenv("FALCON_FAKE_NET_FAULT", fault, 1);
    const auto communicator = joinCommunicator(board, 0, rank, ranks);
    std::vector<float> data(50'000, 1);
    const Call call{Operation::allReduce, DataType::f32, ReduceOp::max, data.data(), data.data(), data.size()};
    for (int step = 0; step < 1000; ++step) {
      const auto start = std::chrono::steady_clock::now();  // of the call in which it is lost, in the end
      const Status done = test::run(*communicator, call);
      if (done) continue;
      if (step == 0) return "not even the first went well: " + done.error().message();
      if (done.error().code() != ErrorCode::remote) return "not a remote error: " + done.error().message();
      if (std::chrono::steady_clock::now() - start > Seconds(5)) return "it took longer than 5 s";
      return communicator->asyncError() ? "asyncError() says success" : "";
    }
    return "never failed";
  });
  EXPECT_TRUE(forked.allRight());
}
INSTANTIATE_TEST_SUITE_P(Net, LostConnection,
                         testing::Combine(testing::Range(6, 13), testing::Values("cut:40", "isend:40")),
                         [](const auto& its) {
                           return std::string(std::get<1>(its.param)).substr(0, 3) + "V" +
                                  std::to_string(std::get<0>(its.param));
                         });

std::string sumIsRight(HostCommunicator& communicator) {
  RankBuffers buffers({Operation::allReduce, DataType::i32, ReduceOp::sum, nullptr, nullptr, 5000}, communicator.rank(),
                      communicator.size(), false);
  test::orThrow(test::run(communicator, buffers.call()), "AllReduce");
  const auto right = buffers.check();
  return right ? "" : right.message();
}

TEST(PluginOfSomeRanks, IsUsedByNone) {
  SharedBoard board;
  ForkedRanks forked(ranks, [&](Rank rank) -> std::string {
    usePlugin(12);
    if (rank == 2) setenv("NCCL_NET_PLUGIN", "/not/on/this/host.so", 1);
    return sumIsRight(*joinCommunicator(board, 0, rank, ranks));
  });
  EXPECT_TRUE(forked.allRight(Seconds(60)));
}

TEST(PluginOfSomeRanks, MayDifferInVersion) {
  SharedBoard board;
  ForkedRanks forked(ranks, [&](Rank rank) -> std::string {
    usePlugin(rank == 0 ? 6 : rank == 1 ? 10 : 12);
    setenv("NCCL_NET", "Fake", 1);
    return sumIsRight(*joinCommunicator(board, 0, rank, ranks));
  });
  EXPECT_TRUE(forked.allRight(Seconds(60)));
}

// Where one rank finds no network of the wished name, nobody waits for it until the time is up.
TEST(PluginOfSomeRanks, IsAnErrorOnAllWhereOneHasNoneOfTheName) {
  SharedBoard board;
  ForkedRanks forked(ranks, [&](Rank rank) -> std::string {
    usePlugin(12);
    setenv("NCCL_NET", rank == 2 ? "OtherName" : "Fake", 1);
    try {
      joinCommunicator(board, 0, rank, ranks);
      return "a communicator was made";
    } catch (const std::runtime_error& error) {
      const std::string text = error.what();
      const bool said = rank != 2 || text.find("NCCL_NET=OtherName names none") != std::string::npos;
      return said ? "" : text;
    }
  });
  EXPECT_TRUE(forked.allRight(Seconds(50)));  // the time would be up after 60
}

}  // namespace
}  // namespace falcon::collectives
