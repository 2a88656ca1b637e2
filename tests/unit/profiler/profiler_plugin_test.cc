// Our profiler plugin as NCCL loads it, by each of its versions, and what it leaves for `falcon`.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "harness/fake_profiler.h"
#include "harness/fork_alone.h"
#include "harness/forked_ranks.h"
#include "harness/told_events.h"
#include "instrument/call_log_view.h"

namespace falcon::plugin {
namespace {

using test::ForkedRanks;
using test::ToldCommunicator;
using namespace std::chrono_literals;

const ProfiledCommunicator pluginFacts{.id = 0x77, .name = "dp", .nodes = 1, .ranks = 4, .rank = 2};

/// Of the version; in a process of its own, since the plugin reads its settings once a process.
std::unique_ptr<ProfilerCalls> load(int number) {
  void* library = dlopen(FALCON_PROFILER, RTLD_NOW | RTLD_LOCAL);
  const auto& version = profilerVersions[7 - number];
  const void* symbol = library ? dlsym(library, version.symbol) : nullptr;
  if (!symbol) throw std::runtime_error(library ? version.symbol : dlerror());
  return version.adapt(symbol);
}

std::string jobOf(pid_t process) {
  return "profiler-plugin-" + std::to_string(process);
}

/// What its job has left goes with it: another process of that number must not find it.
testing::AssertionResult areRightAndGone(ForkedRanks& ranks) {
  const auto right = ranks.allRight();
  std::filesystem::remove_all(instrument::jobFolder(jobOf(ranks.pid(0))));
  return right;
}

void setUp(const char* falcon) {
  std::filesystem::remove_all(instrument::jobFolder(jobOf(getpid())));  // of one of this number that was killed
  setenv("NCCL_FALCON", falcon, 1);
  setenv("NCCL_FALCON_JOB", jobOf(getpid()).c_str(), 1);
  setenv("RANK", "2", 1);
  setenv("WORLD_SIZE", "4", 1);
}

/// What is wrong with the log as others see it; "": nothing.
std::string complaintOf(const instrument::CallLogView& log, std::size_t calls, bool transfers) {
  if (log.communicators.size() != 1 || log.communicators[0].id != pluginFacts.id) return "not one communicator";
  const instrument::CommunicatorView& communicator = log.communicators[0];
  if (communicator.name != "dp" || communicator.rank != 2 || communicator.size != 4) return "another communicator";
  for (Rank rank = 0; rank < 4; ++rank)
    if (communicator.members[rank].jobRank != rank) return "not the job's ranks";
  if (!communicator.vendor) return "not the vendor's";
  if (log.latest.size() != calls) return std::to_string(log.latest.size()) + " calls";
  for (std::size_t i = 0; i < calls; ++i)
    if (log.latest[i].sequence != i || log.latest[i].operation != Operation::allReduce) return "another call";
  if (transfers == log.transfers.empty()) return std::to_string(log.transfers.size()) + " transfers";
  return "";
}

class OwnProfiler : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Profiler, OwnProfiler, testing::Range(4, 8));

/// A thread of the plugin's may change it at any time.
int valueOf(int& mask) {
  return std::atomic_ref(mask).load();
}
std::string maskIs(int value) {
  return "the mask is " + std::to_string(value);
}

TEST_P(OwnProfiler, LeavesALogThatFalconReads) {
  ForkedRanks ranks(1, [&](int) -> std::string {
    setUp("1");
    const auto calls = load(GetParam());
    const std::string file = instrument::jobFolder(jobOf(getpid())) + "/rank-2.calls";
    int mask = 0;
    {
      ToldCommunicator told(*calls, pluginFacts, mask);
      if (const int now = valueOf(mask); now != (collectiveEvent | messageEvent)) return maskIs(now);
      for (int i = 0; i < 5; ++i) told.allReduce(100, 1);
      const auto log = instrument::readCallLog(file, 100);
      if (!log) return log.error().message();
      if (auto wrong = complaintOf(*log, 5, false); !wrong.empty()) return wrong;
      if (log->state != instrument::JobState::tracking) return "not tracking";
    }
    const auto log = instrument::readCallLog(file, 100);
    if (!log) return log.error().message();
    return log->ended ? "" : "it has not ended in order";
  });
  EXPECT_TRUE(areRightAndGone(ranks));
}

/// What moves the data is observed when the period is known, for some iterations, and then no more.
TEST_P(OwnProfiler, ProfilesOnceThePeriodIsKnown) {
  ForkedRanks ranks(1, [&](int) -> std::string {
    setUp("1");
    const auto calls = load(GetParam());
    const std::string file = instrument::jobFolder(jobOf(getpid())) + "/rank-2.calls";
    int mask = 0;
    ToldCommunicator told(*calls, pluginFacts, mask);
    const ToldCommunicator::Transfer sends{.channel = 0, .peer = 3, .steps = 1};
    const auto begun = std::chrono::steady_clock::now();
    bool profiled = false;
    while (std::chrono::steady_clock::now() - begun < 60s) {
      for (const std::size_t count : {100, 200, 300}) told.allReduce(count, 1, &sends);
      std::this_thread::sleep_for(20ms);
      const bool on = (valueOf(mask) & proxyStepEvent) != 0;
      profiled = profiled || on;
      if (profiled && !on) break;
    }
    if (!profiled) return "never profiled";
    if ((valueOf(mask) & proxyStepEvent) != 0) return "never ceased";
    const auto log = instrument::readCallLog(file, 10);
    if (!log) return log.error().message();
    if (log->transfers.empty()) return "no transfers";
    if (log->iterations < 3 || log->iterationSeconds <= 0) return "no iterations";
    const auto isSend = [](const TransferTiming& transfer) { return transfer.peer == 3 && transfer.sending; };
    return std::any_of(log->transfers.begin(), log->transfers.end(), isSend) ? "" : "no send";
  });
  EXPECT_TRUE(areRightAndGone(ranks));
}

/// As `falcon off` asks for.
TEST_P(OwnProfiler, CanBeSwitchedOffInALiveJob) {
  ForkedRanks ranks(1, [&](int) -> std::string {
    setUp("1");
    const auto calls = load(GetParam());
    const std::string file = instrument::jobFolder(jobOf(getpid())) + "/rank-2.calls";
    int mask = 0;
    ToldCommunicator told(*calls, pluginFacts, mask);
    told.allReduce(100, 0);
    if (const auto sent = instrument::sendCommand(file, instrument::JobCommand::off); !sent)
      return sent.error().message();
    const auto begun = std::chrono::steady_clock::now();
    while (valueOf(mask) != 0 && std::chrono::steady_clock::now() - begun < 60s) std::this_thread::sleep_for(5ms);
    if (const int now = valueOf(mask); now != 0) return maskIs(now);
    const auto log = instrument::readCallLog(file, 10);
    if (!log) return log.error().message();
    return log->state == instrument::JobState::off && log->latest.size() == 1 ? "" : "it is not off";
  });
  EXPECT_TRUE(areRightAndGone(ranks));
}

TEST_P(OwnProfiler, WithoutFalconWantsAndLeavesNothing) {
  ForkedRanks ranks(1, [&](int) -> std::string {
    setUp("0");
    const auto calls = load(GetParam());
    int mask = 0;
    ToldCommunicator told(*calls, pluginFacts, mask);
    if (told.result != success) return "not begun";
    if (const int now = valueOf(mask); now != 0) return maskIs(now);
    if (std::filesystem::exists(instrument::jobFolder(jobOf(getpid())))) return "it has left something";
    return test::threadsBesidesThis() == 0 ? "" : "it has a thread";
  });
  EXPECT_TRUE(areRightAndGone(ranks));
}

TEST_P(OwnProfiler, ChainsAnotherWithAndWithoutFalcon) {
  for (const char* falcon : {"0", "1"}) {
    ForkedRanks ranks(1, [&](int) -> std::string {
      setUp(falcon);
      const std::string chained = FALCON_FAKE_PLUGINS "/libnccl-profiler-fake" + std::to_string(GetParam()) + ".so";
      setenv("NCCL_FALCON_CHAINED_PROFILER", chained.c_str(), 1);
      setenv("FALCON_FAKE_PROFILER_MASK", std::to_string(kernelChannelEvent).c_str(), 1);
      const auto calls = load(GetParam());
      int mask = 0;
      {
        ToldCommunicator told(*calls, pluginFacts, mask);
        if (const int now = valueOf(mask); (now & kernelChannelEvent) == 0) return maskIs(now);
        told.allReduce(100, 2);
      }
      void* library = dlopen(chained.c_str(), RTLD_NOW | RTLD_NOLOAD);
      auto& log = *reinterpret_cast<test::FakeProfilerLog* (*)()>(dlsym(library, "fakeProfilerLog"))();
      int channels = 0;
      for (const std::string& line : log.take()) channels += line.starts_with("channel ") ? 1 : 0;
      if (channels != 2) return std::to_string(channels) + " channels";
      return log.open == 0 && log.finalizes == 1 ? "" : "it was left open";
    });
    EXPECT_TRUE(areRightAndGone(ranks)) << "NCCL_FALCON=" << falcon;
  }
}

}  // namespace
}  // namespace falcon::plugin
