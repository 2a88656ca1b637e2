// Profiler and tuner plugins under the library itself, as a program sees it: other people's and our own.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <fstream>

#include "abi/ranks.h"
#include "harness/fake_profiler.h"
#include "harness/fake_tuner.h"

namespace falcon::abi {
namespace {

using testing::Contains;
using testing::HasSubstr;
using Environment = std::vector<std::pair<const char*, std::string>>;

constexpr int size = 3;

std::string fake(const std::string& kind, int version) {
  return FALCON_FAKE_PLUGINS "/libnccl-" + kind + "-fake" + std::to_string(version) + ".so";
}
/// What the plugin of this process exports under that name.
template <class T>
T& its(const std::string& path, const char* function) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  return *reinterpret_cast<T* (*)()>(dlsym(library, function))();
}

/// Each operation once, small and large, alone and in groups; checked.
void useAllPlugins() {
  withRanks(size, [](int rank, ncclComm_t& comm) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{3000}, std::size_t{400000}}) {
      std::vector<int> in(count * size, rank + 1), out(count * size);
      NCCL_OK(ncclAllReduce(in.data(), out.data(), count, ncclInt, ncclSum, comm, noStream));
      EXPECT_EQ(out[count - 1], 6);
      NCCL_OK(ncclAllGather(in.data(), out.data(), count, ncclInt, comm, noStream));
      EXPECT_EQ(out[count * size - 1], size);
      NCCL_OK(ncclReduceScatter(in.data(), out.data(), count, ncclInt, ncclSum, comm, noStream));
      EXPECT_EQ(out[0], 6);
      NCCL_OK(ncclBroadcast(in.data(), out.data(), count, ncclInt, 1, comm, noStream));
      EXPECT_EQ(out[0], 2);
      NCCL_OK(ncclAlltoAll(in.data(), out.data(), count, ncclInt, comm, noStream));
      EXPECT_EQ(out[0], 1);
      NCCL_OK(ncclGroupStart());
      NCCL_OK(ncclSend(in.data(), count, ncclInt, (rank + 1) % size, comm, noStream));
      NCCL_OK(ncclRecv(out.data(), count, ncclInt, (rank + 2) % size, comm, noStream));
      NCCL_OK(ncclAllReduce(in.data(), in.data() + count, 1, ncclInt, ncclMax, comm, noStream));
      NCCL_OK(ncclGroupEnd());
      EXPECT_EQ(out[0], (rank + 2) % size + 1);
      EXPECT_EQ(in[count], size);
    }
  });
}

class AnyProfiler : public testing::TestWithParam<std::tuple<int, const char*>> {};
INSTANTIATE_TEST_SUITE_P(Plugins, AnyProfiler, testing::Combine(testing::Range(4, 8), testing::Values("0", "1")));

/// The mask is all that the version knows: nothing is left open, and the results are right.
TEST_P(AnyProfiler, IsToldOfEveryCall) {
  const auto& [version, withoutMemory] = GetParam();
  const std::string path = fake("profiler", version);
  inFreshChild({{"NCCL_PROFILER_PLUGIN", path}, {"NCCL_SHM_DISABLE", withoutMemory}}, [&] {
    useAllPlugins();
    auto& log = its<test::FakeProfilerLog>(path, "fakeProfilerLog");
    EXPECT_EQ(log.inits, size);
    EXPECT_EQ(log.finalizes, size);
    EXPECT_EQ(log.open, 0);
    const auto lines = log.take();
    EXPECT_THAT(lines, Contains(HasSubstr(": AllReduce 0 of 1 ncclInt32 by ")));
    EXPECT_THAT(lines, Contains(HasSubstr(": AllReduce 5 of 1 ncclInt32 by "))) << "of the last group";
    EXPECT_THAT(lines, Contains(HasSubstr(": Send of 400000 with 1 on 1")));
    int channels = 0, steps = 0, operations = 0;
    for (const std::string& line : lines) {
      channels += line.starts_with("channel ") ? 1 : 0;
      steps += line.starts_with("step ") ? 1 : 0;
      operations += line.starts_with("op ") ? 1 : 0;
    }
    EXPECT_GT(channels, 0);
    EXPECT_GT(operations, 0);
    EXPECT_GE(steps, operations);
  });
}

TEST(Plugins, AProfilerIsToldTheCommunicatorsName) {
  for (const int version : {4, 7})
    inFreshChild({{"NCCL_PROFILER_PLUGIN", fake("profiler", version)}}, [version] {
      ncclUniqueId id;
      Communicator named, child;
      NCCL_OK(ncclGetUniqueId(&id));
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.commName = "dp";
      NCCL_OK(ncclCommInitRankConfig(&named.handle, 1, id, 0, &config));
      auto& log = its<test::FakeProfilerLog>(fake("profiler", version), "fakeProfilerLog");
      EXPECT_EQ(log.name, "dp");
      config.commName = "tp";
      NCCL_OK(ncclCommSplit(named.handle, 0, 0, &child.handle, &config));
      EXPECT_EQ(log.name, "tp");
    });
}

/// A plugin that wants nothing costs no result, and one that fails at any point does not break the job.
TEST(Plugins, AnUnsoundProfilerHarmsNobody) {
  for (const char* fault : {"init", "start", "lacks-members", "no-name"})
    inFreshChild({{"NCCL_PROFILER_PLUGIN", fake("profiler", 6)}, {"FALCON_FAKE_PLUGIN_FAULT", fault}}, useAllPlugins);
  inFreshChild({{"NCCL_PROFILER_PLUGIN", fake("profiler", 6)}, {"FALCON_FAKE_PROFILER_MASK", "0"}}, [] {
    useAllPlugins();
    EXPECT_TRUE(its<test::FakeProfilerLog>(fake("profiler", 6), "fakeProfilerLog").take().empty());
  });
}

class AnyTuner : public testing::TestWithParam<std::tuple<int, const char*>> {};
INSTANTIATE_TEST_SUITE_P(Plugins, AnyTuner, testing::Combine(testing::Range(4, 8), testing::Values("0", "1")));

/// Its choice is followed on all ranks: seen by a profiler.
TEST_P(AnyTuner, Chooses) {
  const int version = std::get<0>(GetParam());
  const char* const withoutMemory = std::get<1>(GetParam());
  for (const char* const row : {"0", "1"}) {
    const std::string algorithm = *row == '0' ? "TREE" : "RING";
    inFreshChild({{"NCCL_TUNER_PLUGIN", fake("tuner", version)},
                  {"FALCON_FAKE_TUNER_ROW", row},
                  {"FALCON_FAKE_TUNER_CHANNELS", "2"},
                  {"NCCL_PROFILER_PLUGIN", fake("profiler", 7)},
                  {"NCCL_SHM_DISABLE", withoutMemory},
                  {"NCCL_MAX_NCHANNELS", "2"}},
                 [&] {
                   useAllPlugins();
                   const auto lines = its<test::FakeProfilerLog>(fake("profiler", 7), "fakeProfilerLog").take();
                   EXPECT_THAT(lines, Contains(HasSubstr("AllReduce 4 of 400000 ncclInt32 by " + algorithm + " on 2")));
                   auto& counts = its<test::FakeTunerCounts>(fake("tuner", version), "fakeTunerCounts");
                   EXPECT_EQ(counts.inits, size);
                   EXPECT_EQ(counts.finalizes, size);
                   // Five collectives that are tuned, thrice, on each rank.
                   EXPECT_EQ(counts.asked, size * 3 * 5);
                 });
  }
}

/// Without a profiler, by the short ways.
TEST(Plugins, ATunerChangesNoResult) {
  for (const char* row : {"", "0", "1", "4"})
    for (const char* fault : {"", "ask", "nothing", "init", "lacks-members"})
      inFreshChild({{"NCCL_TUNER_PLUGIN", fake("tuner", 6)},
                    {"FALCON_FAKE_TUNER_ROW", row},
                    {"FALCON_FAKE_TUNER_CHANNELS", "7"},
                    {"FALCON_FAKE_PLUGIN_FAULT", fault}},
                   useAllPlugins);
}

TEST(Plugins, OurTunerSteersOurEngine) {
  const std::string rules = testing::TempDir() + "falcon-tuner-rules-" + std::to_string(getpid());
  std::ofstream(rules) << "avoid AllReduce Ring * from=3\n";
  inFreshChild({{"NCCL_TUNER_PLUGIN", FALCON_TUNER},
                {"NCCL_FALCON_TUNER_RULES", rules},
                {"NCCL_PROFILER_PLUGIN", fake("profiler", 7)}},
               [] {
                 useAllPlugins();
                 const auto lines = its<test::FakeProfilerLog>(fake("profiler", 7), "fakeProfilerLog").take();
                 EXPECT_THAT(lines, Contains(HasSubstr("AllReduce 2 of 3000 ncclInt32 by TREE")));
               });
  std::filesystem::remove(rules);
}

/// Alone it records what our engine does; where Falcon watches the job itself, it does not record twice.
TEST(Plugins, OurProfilerWithOurEngine) {
  for (const auto& row : {std::pair{"0", "on"}, {"1", "on"}, {"1", "auto"}, {"0", "auto"}}) {
    const char* const falcon = row.first;
    const char* const own = row.second;
    const NamedJob job;
    inFreshChild({{"NCCL_PROFILER_PLUGIN", FALCON_PROFILER},
                  {"NCCL_FALCON", falcon},
                  {"NCCL_FALCON_PROFILER", own},
                  {"NCCL_FALCON_JOB", job.name},
                  {"NCCL_FALCON_CHAINED_PROFILER", fake("profiler", 5)},
                  {"RANK", "0"}},
                 [&] {
                   useAllPlugins();
                   const bool anybody = std::string(falcon) == "1" || std::string(own) == "on";
                   EXPECT_EQ(std::filesystem::exists(job.folder() + "/rank-0.calls"), anybody) << falcon << own;
                   auto& log = its<test::FakeProfilerLog>(fake("profiler", 5), "fakeProfilerLog");
                   EXPECT_EQ(log.open, 0);
                   EXPECT_THAT(log.take(), Contains(HasSubstr(": AllReduce 5 of 1 ncclInt32 by ")));
                 });
  }
}

}  // namespace
}  // namespace falcon::abi
