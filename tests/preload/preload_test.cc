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
  const std::string folder_ =
      (std::filesystem::temp_directory_path() / fmt::format("falcon-preload-{}", getpid())).string();
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

#ifdef FALCON_BINARY
TEST_F(Preload, ExecSetsAllThatIsNeeded) {
  EXPECT_THAT(run("", FALCON_BINARY " exec -- " FALCON_PROGRAM " idle").output, HasSubstr("core loaded"));
  EXPECT_THAT(run("NCCL_FALCON=0", FALCON_BINARY " exec -- " FALCON_PROGRAM " idle").output,
              HasSubstr("core not loaded"));
  EXPECT_EQ(run("", FALCON_BINARY " exec --print -- prog --x 'a b'").output,
            "env LD_PRELOAD=" FALCON_PRELOAD " NCCL_FALCON=1 prog --x 'a b'\n");
  EXPECT_EQ(run("LD_PRELOAD=libm.so.6 NCCL_FALCON=0", FALCON_BINARY " exec --print -- prog").output,
            "env LD_PRELOAD=" FALCON_PRELOAD ":libm.so.6 prog\n");
  EXPECT_EQ(run("", FALCON_BINARY " exec -- no-such-program").code, 127);
  EXPECT_EQ(run("", FALCON_BINARY " exec").code, 2);
  EXPECT_EQ(run("", FALCON_BINARY " exec --no-such-option -- ls").code, 2);
  EXPECT_EQ(run("", FALCON_BINARY " exec -- sh -c 'exit 7'").code, 7) << "it has become the program";
}

TEST_F(Preload, ExecSaysWhichLibraryAProgramWouldLoad) {
  const Outcome linked = run("", FALCON_BINARY " exec --check -- " FALCON_PROGRAM);
  EXPECT_EQ(linked.code, 0) << linked.errors;
  EXPECT_THAT(linked.output, AllOf(HasSubstr("fakes/vendor/libnccl.so.2: version 2.32.3"), HasSubstr("(linked)")));
  const Outcome none = run("", FALCON_BINARY " exec --check -- ls");
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.output, HasSubstr("no NCCL was found that ls would load"));
  const Outcome own = run("", FALCON_BINARY " exec --check -- " FALCON_OWN_PROGRAM);
  EXPECT_THAT(own.output, HasSubstr("NCCL Falcon's own"));
  EXPECT_THAT(run("", FALCON_BINARY " doctor --library " FALCON_PRELOAD).output, HasSubstr("is no library of NCCL"));
}

// As a wheel has it: an interpreter whose packages have NCCL, and a script that it runs.
TEST_F(Preload, ExecLooksIntoThePackagesOfAScriptsInterpreter) {
  const std::string packages = file("packages");
  std::filesystem::create_directories(packages + "/nvidia/nccl/lib");
  std::filesystem::create_symlink(std::filesystem::canonical(FALCON_VENDOR),
                                  packages + "/nvidia/nccl/lib/libnccl.so.2");
  {
    std::ofstream script(file("train"));
    script << "#!/usr/bin/env python3\nprint('not to be run')\n";
  }
  std::filesystem::permissions(file("train"), std::filesystem::perms::owner_all);
  const Outcome outcome = run("PYTHONPATH=" + packages, FALCON_BINARY " exec --check -- " + file("train"));
  EXPECT_EQ(outcome.code, 0) << outcome.errors << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr(packages + "/nvidia/nccl/lib/libnccl.so.2: version 2.32.3"),
                                    HasSubstr("a package of"), Not(HasSubstr("not to be run"))));
}

TEST_F(Preload, ExecTellsAProgramThatHasNcclInside) {
  std::filesystem::copy_file("/bin/true", file("static"));
  std::ofstream(file("static"), std::ios::app) << "NCCL version 2.28.9";
  const Outcome outcome = run("", FALCON_BINARY " exec --check -- " + file("static"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("NCCL is compiled into it"));
}
#endif

}  // namespace
}  // namespace falcon::preload
