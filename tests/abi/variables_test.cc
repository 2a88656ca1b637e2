// NCCL's own variables, and NCCL_FALCON_CHECK.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

using Environment = std::vector<std::pair<const char*, std::string>>;

/// A file for log lines, gone at the end.
class LogFile {
 public:
  LogFile() : path_(testing::TempDir() + "nccl_falcon_variables_" + std::to_string(getpid())) {}
  ~LogFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  int linesWith(const std::string& part) const {
    std::ifstream file(path_);
    int lines = 0;
    for (std::string line; std::getline(file, line);) lines += line.find(part) != std::string::npos;
    return lines;
  }

 private:
  std::string path_;
};

/// Every collective on three ranks, small and large, twice.
void useEverything() {
  withRanks(3, [](int rank, ncclComm_t comm) {
    for (const size_t count : {size_t{10}, size_t{100'000}, size_t{10}}) {
      std::vector<int> in(3 * count, rank + 1), out(3 * count, 0);
      NCCL_OK(ncclAllReduce(in.data(), out.data(), count, ncclInt, ncclSum, comm, noStream));
      EXPECT_EQ(out[count - 1], 6);
      NCCL_OK(ncclReduce(in.data(), out.data(), count, ncclInt, ncclProd, 2, comm, noStream));
      EXPECT_EQ(out[count - 1], 6);
      NCCL_OK(ncclBroadcast(in.data(), out.data(), count, ncclInt, 1, comm, noStream));
      EXPECT_EQ(out[count - 1], 2);
      NCCL_OK(ncclAllGather(in.data(), out.data(), count, ncclInt, comm, noStream));
      EXPECT_EQ(out[3 * count - 1], 3);
      NCCL_OK(ncclReduceScatter(in.data(), out.data(), count, ncclInt, ncclMax, comm, noStream));
      EXPECT_EQ(out[count - 1], 3);
      NCCL_OK(ncclAlltoAll(in.data(), out.data(), count, ncclInt, comm, noStream));
      EXPECT_EQ(out[count], 2);
      NCCL_OK(ncclGather(in.data(), out.data(), count, ncclInt, 0, comm, noStream));
      NCCL_OK(ncclScatter(in.data(), out.data(), count, ncclInt, 0, comm, noStream));
      EXPECT_EQ(out[0], 1);
      NCCL_OK(ncclGroupStart());
      NCCL_OK(ncclSend(in.data(), count, ncclInt, (rank + 1) % 3, comm, noStream));
      NCCL_OK(ncclRecv(out.data(), count, ncclInt, (rank + 2) % 3, comm, noStream));
      NCCL_OK(ncclGroupEnd());
      EXPECT_EQ(out[0], (rank + 2) % 3 + 1);
    }
  });
}

class Variables : public testing::TestWithParam<Environment> {};

TEST_P(Variables, ChangeNoResult) {
  inFreshChild(GetParam(), useEverything);
}

INSTANTIATE_TEST_SUITE_P(
    Sets, Variables,
    testing::Values(Environment{{"NCCL_ALGO", "ring"}}, Environment{{"NCCL_ALGO", "tree"}},
                    Environment{{"NCCL_ALGO", "^ring"}}, Environment{{"NCCL_ALGO", "allreduce:tree;broadcast:ring"}},
                    Environment{{"NCCL_ALGO", "NVLS,PAT"}}, Environment{{"NCCL_ALGO", "rubbish"}},
                    Environment{{"NCCL_PROTO", "LL"}}, Environment{{"NCCL_P2P_DISABLE", "1"}},
                    Environment{{"NCCL_SHM_DISABLE", "1"}}, Environment{{"NCCL_NTHREADS", "256"}},
                    Environment{
                        {"NCCL_SHM_DISABLE", "1"}, {"NCCL_SOCKET_NTHREADS", "2"}, {"NCCL_NSOCKS_PERTHREAD", "2"}},
                    Environment{{"NCCL_FALCON_CHECK", "1"}},
                    Environment{{"NCCL_FALCON_CHECK", "1"}, {"NCCL_SHM_DISABLE", "1"}, {"NCCL_ALGO", "tree"}}));

TEST(Variables, WhatIsNotFollowedIsSaidOnce) {
  const LogFile log;
  inFreshChild({{"NCCL_DEBUG", "INFO"},
                {"NCCL_DEBUG_FILE", log.path()},
                {"NCCL_NTHREADS", "256"},
                {"NCCL_PROFILER_PLUGIN", "no-such"},
                {"NCCL_TUNER_PLUGIN", "no-such"},
                {"NCCL_PROTO", "^simple"},
                {"NCCL_ALGO", "tree"}},
               [] {
                 useEverything();
                 useEverything();
               });
  if (IsSkipped()) return;  // see inFreshChild()
  for (const char* said :
       {"NCCL_NTHREADS=256 has no effect",
        "NCCL_PROFILER_PLUGIN=no-such: PROFILER/Plugin: Could not find: no-such libnccl-profiler-no-such.so",
        "NCCL_TUNER_PLUGIN=no-such: TUNER/Plugin: Could not find: no-such libnccl-tuner-no-such.so",
        "NCCL_PROTO=^simple: the host engine has none of these for",
        "NCCL_ALGO=tree: the host engine has none of these "
        "for Broadcast, Reduce, AllGather, ReduceScatter; what it has by default is used"})
    EXPECT_EQ(log.linesWith(said), 1) << said << " in\n" << log.text();
}

TEST(Variables, ANetPluginCarriesWhatSocketsDo) {
  const LogFile log;
  inFreshChild({{"NCCL_DEBUG", "INFO"},
                {"NCCL_DEBUG_FILE", log.path()},
                {"NCCL_SHM_DISABLE", "1"},
                {"NCCL_NET", "fake"},
                {"NCCL_NET_PLUGIN", "no-such," FALCON_FAKE_NETS "/libnccl-net-fake11.so"}},
               useEverything);
  if (IsSkipped()) return;  // see inFreshChild()
  // One a rank.
  EXPECT_EQ(log.linesWith("NET/Plugin: Could not find: no-such libnccl-net-no-such.so"), 1) << log.text();
  EXPECT_EQ(log.linesWith("NET/Plugin: Loaded net plugin Fake (v11)"), 1) << log.text();
  EXPECT_EQ(log.linesWith("Assigned NET plugin Fake to comm"), 3) << log.text();
  EXPECT_EQ(log.linesWith("Using network Fake"), 3) << log.text();
  EXPECT_EQ(log.linesWith("fake net 11 begins"), 3) << "what the plugin says is not there:" << log.text();
}

TEST(Variables, ANetworkThatIsNotThereIsInvalidUsage) {
  inFreshChild({{"NCCL_NET", "no-such"}}, [] {
    ncclUniqueId id;
    ncclComm_t comm = nullptr;
    NCCL_OK(ncclGetUniqueId(&id));
    EXPECT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("NCCL_NET=no-such"));
    EXPECT_EQ(comm, nullptr);
  });
}

/// Whether a communicator alone is made before the call returns; `config` as given to ncclCommInitRankConfig, or null.
bool isMadeAtOnce(ncclConfig_t* config) {
  ncclUniqueId id;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  Communicator comm;
  const ncclResult_t made =
      config ? ncclCommInitRankConfig(&comm.handle, 1, id, 0, config) : ncclCommInitRank(&comm.handle, 1, id, 0);
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) EXPECT_EQ(ncclCommGetAsyncError(comm.handle, &state), ncclSuccess);
  EXPECT_EQ(state, ncclSuccess);
  EXPECT_THAT(made, AnyOf(ncclSuccess, ncclInProgress));
  return made == ncclSuccess;
}

TEST(Variables, CommBlockingComesBeforeTheConfiguration) {
  for (const char* value : {"0", "1", "rubbish"})
    inFreshChild({{"NCCL_COMM_BLOCKING", value}}, [value] {
      const bool obeyed = *value != 'r', blocking = *value == '1';
      for (const int configured : {0, 1}) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = configured;
        EXPECT_EQ(isMadeAtOnce(&config), obeyed ? blocking : configured == 1) << value << ' ' << configured;
      }
      EXPECT_EQ(isMadeAtOnce(nullptr), !obeyed || blocking) << value;
    });
}

TEST(Variables, AnUnreadablePreferenceIsSaidOnce) {
  const LogFile log;
  inFreshChild({{"NCCL_DEBUG", "WARN"}, {"NCCL_DEBUG_FILE", log.path()}, {"NCCL_ALGO", "allreduce:trees"}},
               useEverything);
  if (IsSkipped()) return;  // see inFreshChild()
  EXPECT_EQ(log.linesWith("NCCL_ALGO=allreduce:trees is not followed: there is no 'trees'"), 1) << log.text();
}

/// What a variable makes of a communicator of three ranks, as its INFO line tells; each has an effect that the line
/// shows.
struct Effect {
  Environment environment;
  int minCTAs, maxCTAs;  ///< of ncclConfig_t; 0: unset
  const char* said;
};
class Effects : public testing::TestWithParam<Effect> {};

TEST_P(Effects, AreThoseThatNcclDescribes) {
  const Effect& effect = GetParam();
  const LogFile log;
  Environment environment{{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", log.path()}};
  environment.insert(environment.end(), effect.environment.begin(), effect.environment.end());
  inFreshChild(environment, [&] {
    ncclUniqueId id;
    NCCL_OK(ncclGetUniqueId(&id));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        if (effect.minCTAs) config.minCTAs = effect.minCTAs;
        if (effect.maxCTAs) config.maxCTAs = effect.maxCTAs;
        Communicator comm;
        NCCL_OK(ncclCommInitRankConfig(&comm.handle, 3, id, rank, &config));
        std::vector<float> data(300'000, 1);
        NCCL_OK(ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm.handle, noStream));
        EXPECT_EQ(data.front(), 3);
        EXPECT_EQ(data.back(), 3);
      });
    for (std::thread& thread : threads) thread.join();
  });
  if (IsSkipped()) return;  // see inFreshChild()
  EXPECT_EQ(log.linesWith(effect.said), 3) << effect.said << " in\n" << log.text();
}

INSTANTIATE_TEST_SUITE_P(
    Variables, Effects,
    testing::Values(Effect{{}, 0, 0, "1 nodes, 1 to 2 channels, buffers of 1048576 bytes"},
                    Effect{{{"NCCL_MIN_NCHANNELS", "2"}}, 0, 0, "2 to 2 channels"},
                    Effect{{{"NCCL_MIN_NCHANNELS", "5"}}, 0, 0, "5 to 5 channels"},
                    Effect{{{"NCCL_MAX_NCHANNELS", "7"}}, 0, 0, "1 to 7 channels"},
                    Effect{{{"NCCL_MIN_NCHANNELS", "3"}, {"NCCL_MAX_NCHANNELS", "4"}}, 0, 0, "3 to 4 channels"},
                    Effect{{{"NCCL_MIN_NCHANNELS", "9"}, {"NCCL_MAX_NCHANNELS", "4"}}, 0, 0, "4 to 4 channels"},
                    Effect{{}, 3, 6, "3 to 6 channels"}, Effect{{}, 4, 0, "4 to 4 channels"},
                    Effect{{}, 0, 1, "1 to 1 channels"}, Effect{{}, 0, 1000, "1 to 64 channels"},
                    // The environment comes first.
                    Effect{{{"NCCL_MAX_NCHANNELS", "2"}}, 0, 6, "1 to 2 channels"},
                    Effect{{{"NCCL_BUFFSIZE", "65536"}}, 0, 0, "buffers of 65536 bytes"},
                    Effect{{{"NCCL_P2P_DISABLE", "1"}}, 0, 0, "short messages by a shared board"},
                    Effect{{{"NCCL_P2P_DISABLE", "0"}}, 0, 0, "ranks read each other's memory"},
                    Effect{{{"NCCL_SHM_DISABLE", "1"}}, 0, 0, "connections only"}));

// What is made of a communicator has a configuration of its own, or else its parent's.
TEST(Configurations, OfChildrenAreTheirOwnWhereThereIsOne) {
  const LogFile log;
  inFreshChild({{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", log.path()}}, [] {
    ncclUniqueId id;
    NCCL_OK(ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.minCTAs = config.maxCTAs = 3;
    Communicator comm, like, other;
    NCCL_OK(ncclCommInitRankConfig(&comm.handle, 1, id, 0, &config));
    NCCL_OK(ncclCommSplit(comm.handle, 0, 0, &like.handle, nullptr));
    config.minCTAs = config.maxCTAs = 5;
    NCCL_OK(ncclCommSplit(comm.handle, 0, 0, &other.handle, &config));
  });
  if (IsSkipped()) return;  // see inFreshChild()
  EXPECT_EQ(log.linesWith("3 to 3 channels"), 2) << log.text();
  EXPECT_EQ(log.linesWith("5 to 5 channels"), 1) << log.text();
}

TEST(Variables, SocketsOfTheWantedFamily) {
  for (const char* family : {"AF_INET", "AF_INET6"}) {
    if (std::string(family) == "AF_INET6" && !std::filesystem::exists("/proc/net/if_inet6")) continue;
    inFreshChild({{"NCCL_SOCKET_IFNAME", "=lo"}, {"NCCL_SOCKET_FAMILY", family}, {"NCCL_SHM_DISABLE", "1"}},
                 useEverything);
  }
}

TEST(Check, NamesTheRankAndTheCallThatDiffer) {
  inFreshChild({{"NCCL_FALCON_CHECK", "1"}}, [] {
    withRanks(3, [](int rank, ncclComm_t comm) {
      std::vector<float> data(20, 1);
      NCCL_OK(ncclAllReduce(data.data(), data.data(), 20, ncclFloat, ncclSum, comm, noStream));
      const ncclResult_t result =
          rank == 1 ? ncclReduceScatter(data.data(), data.data(), 2, ncclFloat, ncclMax, comm, noStream)
                    : ncclAllReduce(data.data(), data.data(), 5, ncclFloat, ncclSum, comm, noStream);
      EXPECT_THAT(result, AnyOf(ncclInvalidUsage, ncclRemoteError));
      EXPECT_THAT(ncclGetLastError(comm), HasSubstr("collective 1 of the communicator is ncclReduceScatter of 2 float "
                                                    "(max) on rank 1, but ncclAllReduce of 5 float (sum) on rank 0"));
    });
  });
}

TEST(Check, NeedsAllRanks) {
  const LogFile log;
  inFreshChild({{"NCCL_DEBUG", "WARN"}, {"NCCL_DEBUG_FILE", log.path()}}, [] {
    // Threads share the environment: the switch is turned between the ranks' offers only by chance, so one rank is a
    // process of its own.
    ncclUniqueId id;
    NCCL_OK(ncclGetUniqueId(&id));
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) setenv("NCCL_FALCON_CHECK", "1", 1);
    Communicator comm;
    NCCL_OK(ncclCommInitRank(&comm.handle, 2, id, child == 0 ? 1 : 0));
    float value = 1;
    NCCL_OK(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm.handle, noStream));
    EXPECT_EQ(value, 2);
    if (child == 0) {
      NCCL_OK(ncclCommDestroy(std::exchange(comm.handle, nullptr)));
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
  if (IsSkipped()) return;  // see inFreshChild()
  EXPECT_EQ(log.linesWith("NCCL_FALCON_CHECK=1 has no effect: not all ranks of the communicator have it set"), 1)
      << log.text();
}

}  // namespace
}  // namespace falcon::abi
