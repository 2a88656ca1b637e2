// How the library behaves in somebody else's process: logs, fork, device pointers on the host engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <fstream>
#include <sstream>

#include "abi/ranks.h"
#include "harness/fakes.h"
#include "harness/fork_alone.h"

namespace falcon::abi {
namespace {

using testing::HasSubstr;
using testing::Not;

bool sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

std::string logPath() {
  return testing::TempDir() + "falcon-log-" + std::to_string(getpid());
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

size_t countOf(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(Manners, OneLineSaysWhetherFalconIsActiveAndHowToChangeIt) {
  for (const char* on : {"0", "1"}) {
    const std::string path = logPath();
    const NamedJob job;
    inFreshChild(
        {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", path}, {"NCCL_FALCON", on}, {"NCCL_FALCON_JOB", job.name}},
        [] { const Communicator first{alone()}, second{alone()}; });
    if (IsSkipped()) return;
    const std::string log = read(path);
    std::remove(path.c_str());
    EXPECT_EQ(countOf(log, "NCCL Falcon is active"), *on == '1' ? 1u : 0u) << log;
    EXPECT_EQ(countOf(log, "NCCL_FALCON=0 turns it off"), *on == '1' ? 1u : 0u);
    EXPECT_THAT(log, HasSubstr("NCCL INFO"));
  }
}

size_t threadsNamed(const std::string& name) {
  size_t count = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
    count += read(thread.path() / "comm") == name + "\n";
  return count;
}

TEST(Manners, FalconHasAThreadAndACallLogOnlyWhenItIsOn) {
  for (const char* on : {"", "0", "1"}) {
    const NamedJob job;
    const size_t expected = *on == '1' ? 1 : 0;
    inFreshChild({{"NCCL_FALCON_JOB", job.name}}, [&] {
      if (*on)
        setenv("NCCL_FALCON", on, 1);
      else
        unsetenv("NCCL_FALCON");
      const Communicator comm{alone()};
      float in = 2, out = 0;
      NCCL_OK(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, comm.handle, noStream));
      // A thread gives itself its name when it gets to run.
      for (int i = 0; i < 6000 && threadsNamed("nccl-falcon-mon") < expected; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      EXPECT_EQ(threadsNamed("nccl-falcon-mon"), expected);
      EXPECT_EQ(std::filesystem::exists(job.folder()), expected == 1) << job.folder();
    });
    if (IsSkipped()) return;
  }
}

TEST(Manners, UnknownNamesAreNoticedOnceAndKnownOnesNot) {
  const std::string path = logPath();
  inFreshChild({{"NCCL_DEBUG", "WARN"},
                {"NCCL_DEBUG_FILE", path},
                {"NCCL_FALCON_ENGIN", "host"},
                {"NCCL_FALCON_ENGINE", "host"}},
               [] { const Communicator first{alone()}, second{alone()}; });
  if (IsSkipped()) return;
  const std::string log = read(path);
  std::remove(path.c_str());
  EXPECT_EQ(countOf(log, "NCCL_FALCON_ENGIN is set"), 1u) << log;
  EXPECT_THAT(log, Not(HasSubstr("NCCL_FALCON_ENGINE is set")));
}

TEST(Manners, AForkedChildStartsClean) {
  const Communicator parents{alone()};
  inFreshChild({}, [&] {
    int count = 0;
    EXPECT_EQ(ncclCommCount(parents.handle, &count), ncclInvalidUsage);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("fork"));
    EXPECT_EQ(ncclCommDestroy(parents.handle), ncclSuccess);
    const Communicator own{alone()};
    float in = 2, out = 0;
    NCCL_OK(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, own.handle, noStream));
    EXPECT_EQ(out, 2);
  });
  int count = 0;
  NCCL_OK(ncclCommCount(parents.handle, &count));
}

// Whatever the other threads were doing inside the library, and whichever locks they held.
TEST(Manners, AChildForkedWhileOthersMakeCommunicatorsStartsClean) {
  if (sanitized()) GTEST_SKIP() << "the sanitizers' own locks do not survive a fork of a process with busy threads";
  const std::string path = logPath();
  const NamedJob job;
  inFreshChild(
      {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", path}, {"NCCL_FALCON", "1"}, {"NCCL_FALCON_JOB", job.name}}, [] {
        // Libraries that the first communicator looks for: a fork in the midst of dlopen() is beyond anybody's help.
        const Communicator first{alone()};
        std::atomic<bool> stop{false};
        std::vector<std::thread> busy;
        for (int i = 0; i < 2; ++i)
          busy.emplace_back([&] {
            while (!stop) {
              const Communicator comm{alone()};
              float value = 1;
              EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm.handle, noStream), ncclSuccess);
            }
          });
        for (int i = 0; i < 30; ++i) {
          const pid_t child = fork();
          if (child == 0) {
            alarm(60);  // ends a child that hangs
            float in = 2, out = 0;
            const ncclComm_t own = alone();
            const bool right = own && ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, own, noStream) == ncclSuccess &&
                               out == 2 && ncclCommDestroy(own) == ncclSuccess;
            _exit(right ? 0 : 1);
          }
          int status = 0;
          waitpid(child, &status, 0);
          EXPECT_TRUE(WIFEXITED(status)) << "child " << i << " hung or crashed: signal " << WTERMSIG(status);
          EXPECT_EQ(WEXITSTATUS(status), 0);
        }
        stop = true;
        for (std::thread& thread : busy) thread.join();
      });
  std::remove(path.c_str());
}

TEST(Manners, DevicePointersAreRefusedByTheHostEngine) {
  inFreshChild({{"NCCL_FALCON_ENGINE", "host"}}, [] {
    harness::FakeCuda driver(FALCON_FAKE_CUDA);
    float device[4] = {}, host[4] = {};
    driver.setDeviceMemory(device, sizeof device);
    const Communicator comm{alone()};
    EXPECT_EQ(ncclAllReduce(device, host, 4, ncclFloat, ncclSum, comm.handle, noStream), ncclInvalidArgument);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("device memory"));
    EXPECT_EQ(ncclAllReduce(host, device, 4, ncclFloat, ncclSum, comm.handle, noStream), ncclInvalidArgument);
    EXPECT_EQ(ncclAllReduce(host, host, 4, ncclFloat, ncclSum, comm.handle, noStream), ncclSuccess)
        << ncclGetLastError(nullptr);
  });
}

// An exception is thrown and caught inside the library, by the run-time linked into it.
TEST(Manners, AThreadThatCannotBeStartedIsAnErrorAndNoCrash) {
  if (sanitized()) GTEST_SKIP() << "the sanitizers' run-time needs the address space";
  inFreshChild({}, [] {
    ncclUniqueId id;
    NCCL_OK(ncclGetUniqueId(&id));
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t room = static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (2 << 20);
    const rlimit limit{room, room};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    // More than the stacks that glibc keeps of threads that have ended.
    std::array<ncclComm_t, 32> comms{};
    EXPECT_EQ(ncclCommInitAll(comms.data(), 32, nullptr), ncclSystemError);
    EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("thread"));
    EXPECT_THAT(comms, testing::Each(nullptr));
  });
}

TEST(Manners, AbortFromAnotherThreadEndsAStuckCall) {
  std::array<ncclComm_t, 2> comms{};
  NCCL_OK(ncclCommInitAll(comms.data(), 2, nullptr));
  float in = 1, out = 0;
  std::atomic<bool> calling{false};
  std::thread stuck([&] {
    calling = true;
    // Its partner never comes.
    EXPECT_NE(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, comms[0], noStream), ncclSuccess);
  });
  while (!calling) std::this_thread::yield();
  // Until it sleeps in there: what it begins afterwards would be with a handle that is gone.
  for (int i = 0; i < 60'000 && test::threadsAwakeBesidesThis() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(ncclCommAbort(comms[0]), ncclSuccess);
  stuck.join();
  EXPECT_EQ(ncclCommAbort(comms[1]), ncclSuccess);
}

}  // namespace
}  // namespace falcon::abi
