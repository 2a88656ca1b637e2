// The preload library before programs that are linked to another library of NCCL, as frameworks are.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>

#include "base/format.h"

namespace falcon::preload {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Outcome {
  int code = -1;
  std::string output, errors;
};

class Preload : public testing::Test {
 protected:
  Preload() { std::filesystem::create_directories(folder_); }
  ~Preload() override { std::filesystem::remove_all(folder_); }

  std::string file(const char* name) const { return folder_ + "/" + name; }

  /// Runs a shell line with `environment` set for it.
  Outcome run(const std::string& environment, const std::string& command) const {
    const std::string line = fmt::format("env {} {} > {} 2> {}", environment, command, file("out"), file("err"));
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), contentOf("out"), contentOf("err")};
  }
  std::string contentOf(const char* name) const {
    std::ifstream stream(file(name));
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::string job() const { return fmt::format("preload-test-{}", getpid()); }
  std::string on() const {
    return fmt::format("LD_PRELOAD={} NCCL_FALCON=1 NCCL_FALCON_JOB={} NCCL_FALCON_EVENTS={}", FALCON_PRELOAD, job(),
                       file("events"));
  }

 private:
  const std::string folder_ = fmt::format("{}/falcon-preload-{}", testing::TempDir(), getpid());
};

const std::string off = "LD_PRELOAD=" FALCON_PRELOAD;

/// Addresses on the stack and of memory differ from run to run.
std::string withoutAddresses(const std::string& text) {
  return std::regex_replace(text, std::regex("0x[0-9a-f]{4,}"), "ADDRESS");
}

TEST_F(Preload, EveryCallArrivesAndReturnsAsWithoutIt) {
  const Outcome without = run("", FALCON_PROGRAM " calls");
  ASSERT_EQ(without.code, 0) << without.errors;
  ASSERT_THAT(without.output, AllOf(HasSubstr("AllReduceConfig"), HasSubstr("Bcast ends"), HasSubstr("peer=12345")));
  for (const std::string& environment : {off, off + " NCCL_FALCON=0", on()}) {
    const Outcome with = run(environment, FALCON_PROGRAM " calls");
    EXPECT_EQ(with.code, 0) << with.errors;
    EXPECT_EQ(withoutAddresses(with.output), withoutAddresses(without.output)) << environment;
    EXPECT_THAT(with.errors, IsEmpty()) << environment;
  }
}

TEST_F(Preload, OffIsNothing) {
  const std::string nothing = "1 thread(s), core not loaded\n";
  EXPECT_EQ(run("", FALCON_PROGRAM " idle").output, nothing);
  EXPECT_EQ(run(off, FALCON_PROGRAM " idle").output, nothing);
  EXPECT_THAT(run(on(), FALCON_PROGRAM " idle").output, HasSubstr("core loaded"));
}

TEST_F(Preload, ChildrenThatNeverCallSeeNothingOfIt) {
  const Outcome outcome = run(on() + " NCCL_DEBUG=INFO", "bash -c 'grep -c falcon-core /proc/self/maps; true'");
  EXPECT_EQ(outcome.output, "0\n");
  EXPECT_THAT(outcome.errors, IsEmpty());
}

TEST_F(Preload, AJobOfTheVendorsIsWatched) {
  for (const char* kind : {"job", "job-late"}) {
    std::filesystem::remove(file("events"));
    const Outcome outcome = run(on(), fmt::format(FALCON_PROGRAM " {} 4 6", kind));
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, "");
    EXPECT_THAT(outcome.errors, IsEmpty());
    const std::string events = contentOf("events");
    EXPECT_THAT(events, HasSubstr("the job has 4 ranks and 3 communicators")) << kind;
    EXPECT_THAT(events, HasSubstr("\"kind\":\"baseline-taken\"")) << kind;
    EXPECT_THAT(events, HasSubstr("no fail-slows were named")) << kind;
  }
}

TEST_F(Preload, ARankWithoutFalconDoesNotHoldTheOthers) {
  const Outcome outcome = run(on(), FALCON_PROGRAM " job-without-one 3 1");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "");
}

TEST_F(Preload, AnIdWithoutRoomIsNotWatchedAndNotChanged) {
  const std::string greedy = " LD_LIBRARY_PATH=" FALCON_GREEDY_FOLDER;
  const Outcome without = run(greedy, FALCON_PROGRAM " job 2 1");
  ASSERT_EQ(without.code, 0) << without.errors;
  const Outcome with = run(on() + greedy, FALCON_PROGRAM " job 2 1");
  EXPECT_EQ(with.code, 0) << with.errors;
  EXPECT_THAT(with.errors, HasSubstr("are not watched"));
}

TEST_F(Preload, WhatTheVendorLacksIsInvalidUsage) {
  const Outcome outcome = run(off, FALCON_PROGRAM " lacking");
  EXPECT_EQ(outcome.output, "5\n");
  EXPECT_THAT(outcome.errors, HasSubstr("ncclGatherConfig is not in the library"));
}

TEST_F(Preload, TwoLibrariesInOneProgramEachGetTheirCallers) {
  for (const std::string& environment : {std::string(), off, on()}) {
    const Outcome outcome = run(environment, FALCON_PLUGIN_HOST);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, HasSubstr("vendor: AllReduce"));
    EXPECT_THAT(outcome.output, HasSubstr("second_vendor: AllReduce"));
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 16) << outcome.output;
    EXPECT_THAT(outcome.errors, IsEmpty());
  }
}

TEST_F(Preload, BeforeOurOwnLibraryItStepsAside) {
  const Outcome outcome = run(on(), FALCON_OWN_PROGRAM " idle");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("core not loaded"));
}

}  // namespace
}  // namespace falcon::preload
