// Which profiler plugin a process has, what it is told, and why another is not used.
#include "plugin/profiler/profiler_directory.h"

#include <gmock/gmock.h>

#include "base/log.h"

#include "harness/fake_plugin_library.h"
#include "harness/fake_profiler.h"

namespace falcon::plugin {
namespace {

using falcon::test::FakePlugin;
using falcon::test::FakeProfilerLog;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* variable = "NCCL_PROFILER_PLUGIN";
const ProfiledCommunicator communicator{.id = 7, .nodes = 2, .ranks = 8, .rank = 3};

FakeProfilerLog& logOf(const FakePlugin& plugin) {
  return plugin.its<FakeProfilerLog>("fakeProfilerLog");
}

class EveryProfiler : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Plugin, EveryProfiler, testing::Range(4, 8));

TEST_P(EveryProfiler, IsBegunAndEndedForEachCommunicator) {
  const FakePlugin fake("profiler", GetParam());
  ProfilerDirectory directory(variable, fake.path());
  {
    const auto one = directory.open(communicator), other = directory.open(communicator);
    ASSERT_TRUE(one && other);
    EXPECT_EQ(one->calls().version(), GetParam());
    EXPECT_STREQ(one->calls().name(), "Fake");
    EXPECT_EQ(one->mask(), one->calls().knownEvents());
    EXPECT_EQ(logOf(fake).inits, 2);
    EXPECT_EQ(logOf(fake).finalizes, 0);
  }
  EXPECT_EQ(logOf(fake).finalizes, 2);
}

TEST_P(EveryProfiler, IsToldOnlyWhatItsVersionKnows) {
  const FakePlugin fake("profiler", GetParam());
  ProfilerDirectory directory(variable, fake.path());
  const auto session = directory.open(communicator);
  ASSERT_TRUE(session);
  Event event{.type = collectiveEvent, .rank = 3};
  event.collective = {
      .number = 5, .function = "AllReduce", .count = 100, .type = "ncclFloat32", .channels = 2, .algorithm = "RING"};
  void* handle = session->start(event);
  ASSERT_NE(handle, nullptr);
  session->stop(handle);
  const Event api{.type = groupApiEvent};
  void* apiHandle = session->start(api);
  EXPECT_EQ(apiHandle != nullptr, GetParam() >= 5);
  session->stop(apiHandle);
  const Event phase{.type = kernelPhaseEvent};
  EXPECT_EQ(session->start(phase) != nullptr, GetParam() >= 7);
  EXPECT_EQ(logOf(fake).take().front(), "collective 1: AllReduce 5 of 100 ncclFloat32 by RING on 2");
}

struct Fault {
  int version;
  const char* fault;
  const char* reason;
};
void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.fault << " of version " << fault.version;
}
class UnsoundProfiler : public testing::TestWithParam<Fault> {};
INSTANTIATE_TEST_SUITE_P(Plugin, UnsoundProfiler,
                         testing::Values(Fault{4, "init", "init returned 2 (system error)"},
                                         Fault{7, "init", "init returned 2 (system error)"},
                                         Fault{4, "lacks-members", "its struct lacks stopEvent"},
                                         Fault{6, "lacks-members", "its struct lacks stopEvent"},
                                         Fault{5, "no-name", "its struct lacks name"}));

TEST_P(UnsoundProfiler, IsDeclinedByNameAndNotTriedAgain) {
  const auto [version, fault, reason] = GetParam();
  const FakePlugin fake("profiler", version, {{"FALCON_FAKE_PLUGIN_FAULT", fault}});
  ProfilerDirectory directory(variable, fake.path());
  setenv("NCCL_DEBUG", "WARN", 1);
  log::reset();
  testing::internal::CaptureStderr();
  EXPECT_EQ(directory.open(communicator), nullptr);
  const std::string first = testing::internal::GetCapturedStderr();
  EXPECT_THAT(first, HasSubstr(reason));
  EXPECT_THAT(first, HasSubstr(fake.path()));
  const int inits = logOf(fake).inits;
  testing::internal::CaptureStderr();
  EXPECT_EQ(directory.open(communicator), nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  unsetenv("NCCL_DEBUG");
  log::reset();
  EXPECT_EQ(logOf(fake).inits, inits);
}

TEST(ProfilerDirectory, AnEventThatIsRefusedHasNoHandleAndHarmsNobody) {
  const FakePlugin fake("profiler", 7, {{"FALCON_FAKE_PLUGIN_FAULT", "start"}});
  ProfilerDirectory directory(variable, fake.path());
  const auto session = directory.open(communicator);
  ASSERT_TRUE(session);
  const Event event{.type = groupEvent};
  void* handle = session->start(event);
  EXPECT_EQ(handle, nullptr);
  session->state(handle, EventState::groupEndApiStart);
  session->stop(handle);
  EXPECT_THAT(logOf(fake).take(), ElementsAre());
}

TEST(ProfilerDirectory, NoneIsNone) {
  EXPECT_EQ(ProfilerDirectory(variable, "").open(communicator), nullptr);
  EXPECT_EQ(ProfilerDirectory(variable, "NONE").open(communicator), nullptr);
  EXPECT_EQ(ProfilerDirectory(variable, "/no/such/file.so").open(communicator), nullptr);
  EXPECT_EQ(ProfilerDirectory(variable, "libc.so.6").open(communicator), nullptr);
}

TEST(ProfilerDirectory, StaticPluginIsWhatTheProgramHas) {
  const FakePlugin fake("profiler", 6);
  ASSERT_NE(dlopen(fake.path().c_str(), RTLD_NOW | RTLD_GLOBAL), nullptr);  // as if it were linked
  ProfilerDirectory directory(variable, "STATIC_PLUGIN");
  const auto session = directory.open(communicator);
  ASSERT_TRUE(session);
  EXPECT_EQ(session->calls().version(), 6);
}

}  // namespace
}  // namespace falcon::plugin
