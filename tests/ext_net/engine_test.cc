// The host engine over our plugins.
#include <dlfcn.h>
#include <sys/socket.h>

#include <cstdlib>

#include "base/socket_address.h"
#include "falcon_net_state.h"
#include "harness/engine_rank.h"
#include "harness/rank_buffers.h"

namespace falcon::collectives {
namespace {

using test::ForkedRanks;
using test::joinCommunicator;
using test::RankBuffers;
using test::Seconds;
using test::SharedBoard;

struct EnginePlugin {
  const char* file;
  const char* name;
  const char* sockets;
};

void PrintTo(const EnginePlugin& plugin, std::ostream* out) {
  *out << plugin.name << " with " << plugin.sockets << " sockets";
}

void use(const EnginePlugin& plugin) {
  setenv("NCCL_SHM_DISABLE", "1", 1);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);  // other tests' interfaces come and go
  setenv("NCCL_NET_PLUGIN", plugin.file, 1);
  setenv("NCCL_NET", plugin.name, 1);
  setenv("NCCL_SOCKET_NTHREADS", plugin.sockets, 1);
}

class OverOurs : public testing::TestWithParam<std::tuple<EnginePlugin, int>> {};

TEST_P(OverOurs, EveryCollectiveIsRight) {
  const auto [plugin, ranks] = GetParam();
  SharedBoard board;
  ForkedRanks forked(ranks, [&, plugin = plugin, ranks = ranks](Rank rank) -> std::string {
    use(plugin);
    const auto communicator = joinCommunicator(board, 0, rank, ranks);
    for (const Operation operation :
         {Operation::allReduce, Operation::broadcast, Operation::reduce, Operation::allGather, Operation::reduceScatter,
          Operation::allToAll, Operation::gather, Operation::scatter})
      for (const std::size_t count : {1ul, 1000ul, 300'000ul}) {
        Call call{operation, DataType::i32, ReduceOp::sum, nullptr, nullptr, count};
        call.peer = ranks - 1;  // the root
        RankBuffers buffers(call, rank, ranks, false);
        test::orThrow(test::run(*communicator, buffers.call()), "a collective");
        if (const auto right = buffers.check(); !right) return right.message();
      }
    return "";
  });
  EXPECT_TRUE(forked.allRight(Seconds(60)));
}

/// Ends every connection of the plugin's in this process, behind its back.
int cutAll(const char* file) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
  if (!library) return -1;
  const auto* state = static_cast<const falconNetState_v1_t*>(dlsym(library, FALCON_NET_STATE_SYMBOL));
  falconNetConnection_v1 connections[64];
  std::uint32_t count = 0;
  if (!state || state->connections(connections, 64, &count) != 0) return -1;
  int cut = 0;
  for (int socket = 3; socket < 1024; ++socket) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) continue;
    const std::string peer = SocketAddress(reinterpret_cast<sockaddr*>(&address), length).text();
    for (std::uint32_t i = 0; i < std::min(count, 64u); ++i)
      if (peer == connections[i].peer) cut += shutdown(socket, SHUT_RDWR) == 0;
  }
  return cut;
}

class LostConnectionOverOurs : public OverOurs {};

TEST_P(LostConnectionOverOurs, IsARemoteErrorOnAllRanksWithinFiveSeconds) {
  const auto [plugin, ranks] = GetParam();
  SharedBoard board;
  ForkedRanks forked(ranks, [&, plugin = plugin, ranks = ranks](Rank rank) -> std::string {
    use(plugin);
    const auto communicator = joinCommunicator(board, 0, rank, ranks);
    std::vector<float> data(50'000, 1);
    const Call call{Operation::allReduce, DataType::f32, ReduceOp::max, data.data(), data.data(), data.size()};
    auto since = std::chrono::steady_clock::now();
    for (int step = 0; step < 100'000; ++step) {
      if (step == 20) {
        since = std::chrono::steady_clock::now();
        if (rank == 1 && cutAll(plugin.file) < 1) return "no connection was found to be cut";
      }
      const Status done = test::run(*communicator, call);
      if (done) continue;
      if (step < 15) return "the first calls did not go well: " + done.error().message();
      if (done.error().code() != ErrorCode::remote) return "not a remote error: " + done.error().message();
      return std::chrono::steady_clock::now() - since < Seconds(5) ? "" : "it took longer than 5 s";
    }
    return "never failed";
  });
  EXPECT_TRUE(forked.allRight(Seconds(60)));
}

std::string titleOf(const testing::TestParamInfo<std::tuple<EnginePlugin, int>>& given) {
  const auto& [plugin, ranks] = given.param;
  return (plugin.name == std::string("falcon-ucx") ? "Ucx" : std::string("SocketTimes") + plugin.sockets) + "Ranks" +
         std::to_string(ranks);
}

constexpr EnginePlugin overSockets[] = {{FALCON_NET_SOCKET, "falcon-socket", "1"},
                                        {FALCON_NET_SOCKET, "falcon-socket", "3"}};
INSTANTIATE_TEST_SUITE_P(Net, OverOurs, testing::Combine(testing::ValuesIn(overSockets), testing::Values(2, 4)),
                         titleOf);
INSTANTIATE_TEST_SUITE_P(Net, LostConnectionOverOurs,
                         testing::Combine(testing::ValuesIn(overSockets), testing::Values(2, 4)), titleOf);
#ifdef FALCON_NET_UCX
constexpr EnginePlugin overUcx[] = {{FALCON_NET_UCX, "falcon-ucx", "1"}};
INSTANTIATE_TEST_SUITE_P(Ucx, OverOurs, testing::Combine(testing::ValuesIn(overUcx), testing::Values(2, 4)), titleOf);
// UCX's own sockets cannot be told from others: what is cut are the lifelines.
INSTANTIATE_TEST_SUITE_P(Ucx, LostConnectionOverOurs,
                         testing::Combine(testing::ValuesIn(overUcx), testing::Values(2, 4)), titleOf);
#endif

}  // namespace
}  // namespace falcon::collectives
