// The preload library before programs that are linked to another library of NCCL, as frameworks are.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>

#include "harness/reserved_port.h"
#include "preload/preloaded.h"

namespace falcon::preload {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

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

TEST_F(Preload, ByARelativePathItIsFoundFromAnotherWorkingFolderToo) {
  const std::filesystem::path library(FALCON_PRELOAD);
  const std::string environment =
      fmt::format("-C {} LD_PRELOAD=./{} NCCL_FALCON=1 NCCL_FALCON_JOB={} NCCL_FALCON_EVENTS={}",
                  library.parent_path().string(), library.filename().string(), job(), file("events"));
  const Outcome with = run(environment, FALCON_PROGRAM " idle-elsewhere");
  EXPECT_EQ(with.code, 0);
  EXPECT_THAT(with.errors, IsEmpty());
  EXPECT_THAT(with.output, HasSubstr("core loaded"));
}

// Each of the core's allocations fails in turn, alone and with all that come after it: also in a forked child.
TEST_F(Preload, WithoutMemoryForFalconTheProgramGoesOnAsWithoutIt) {
  const Outcome without = run("", FALCON_PROGRAM " calls");
  constexpr int allocations = 400, step = 3;  // the program makes Falcon ask for some 350 at the least
  for (int first = 0; first < allocations; first += step)
    for (const int last : {first, 1 << 30}) {
      const std::string environment = fmt::format(
          "LD_PRELOAD={}:{} NCCL_FALCON=1 NCCL_FALCON_JOB={} NO_MEMORY_IN=libnccl-falcon-core NO_MEMORY_FROM={} "
          "NO_MEMORY_TO={}",
          FALCON_NO_MEMORY, FALCON_PRELOAD, job(), first, last);
      const Outcome with = run(environment, "timeout 20 " FALCON_PROGRAM " calls");
      ASSERT_EQ(with.code, 0) << "allocations " << first << " to " << last << ": " << with.errors;
      ASSERT_EQ(withoutAddresses(with.output), withoutAddresses(without.output)) << first << " to " << last;
    }
}

// Calls may fail for it; nothing may end the process, not even a thread that serves a host stream.
TEST_F(Preload, WithoutMemoryForOurOwnLibraryItsProgramGoesOn) {
  constexpr int allocations = 60;
  for (const char* falcon : {"0", "1"})
    for (int first = 0; first < allocations; ++first)
      for (const int last : {first, 1 << 30}) {
        const std::string environment = fmt::format(
            "LD_PRELOAD={} NCCL_FALCON={} NCCL_FALCON_JOB={} NO_MEMORY_IN=libnccl.so NO_MEMORY_FROM={} NO_MEMORY_TO={}",
            FALCON_NO_MEMORY, falcon, job(), first, last);
        const Outcome outcome = run(environment, "timeout 20 " FALCON_OWN_PROGRAM " extension");
        ASSERT_EQ(outcome.code, 0) << "allocations " << first << " to " << last << ": " << outcome.errors;
      }
}

TEST_F(Preload, OffIsNothing) {
  const std::string nothing = "1 thread(s), core not loaded, profiler not loaded\n";
  EXPECT_EQ(run("", FALCON_PROGRAM " idle").output, nothing);
  EXPECT_EQ(run(off, FALCON_PROGRAM " idle").output, nothing);
  EXPECT_THAT(run(on(), FALCON_PROGRAM " idle").output, HasSubstr("core loaded"));
}

TEST_F(Preload, WithoutItsCoreItForwardsAndSaysWhyOnce) {
  std::filesystem::copy_file(FALCON_PRELOAD, file("libnccl-falcon.so"));
  const Outcome without = run("", FALCON_PROGRAM " calls");
  const Outcome outcome = run("NCCL_FALCON=1 LD_PRELOAD=" + file("libnccl-falcon.so"), FALCON_PROGRAM " calls");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(withoutAddresses(outcome.output), withoutAddresses(without.output));
  EXPECT_THAT(outcome.errors, HasSubstr("so nothing is watched: "));
  EXPECT_THAT(outcome.errors, HasSubstr("cannot open shared object file: No such file or directory"));
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
}

TEST_F(Preload, ASwitchThatIsNeitherOnNorOffIsSaidOnce) {
  const Outcome outcome = run(off + " NCCL_FALCON=yes", FALCON_PROGRAM " calls");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.errors, testing::StartsWith("["));
  EXPECT_THAT(outcome.errors, HasSubstr("NCCL WARN NCCL Falcon: NCCL_FALCON is neither 0 nor 1"));
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
}

TEST_F(Preload, ChildrenThatNeverCallSeeNothingOfIt) {
  const Outcome outcome = run(on() + " NCCL_DEBUG=INFO", "bash -c 'grep -c falcon-core /proc/self/maps; true'");
  EXPECT_EQ(outcome.output, "0\n");
  EXPECT_THAT(outcome.errors, IsEmpty());
}

// NCCL would empty it, and knows of nobody else who writes there.
TEST_F(Preload, TheVendorHasTheLogFileForItself) {
  const Outcome outcome =
      run(fmt::format("{} NCCL_DEBUG=INFO NCCL_DEBUG_FILE={}", on(), file("log%%")), FALCON_PROGRAM " idle");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_FALSE(std::filesystem::exists(file("log%")));
  EXPECT_THAT(contentOf("log%.falcon"), HasSubstr("NCCL Falcon watches the communicators of the vendor's NCCL"));
}

TEST_F(Preload, AJobOfTheVendorsIsWatched) {
  for (const char* kind : {"job", "job-late", "job-moved"}) {
    std::string events;
    // A busy machine may slow a rank down in earnest, which is named then: not each time.
    for (int attempt = 0; attempt < 3 && events.find("no fail-slows were named") == std::string::npos; ++attempt) {
      std::filesystem::remove(file("events"));
      const Outcome outcome = run(on() + " AWAITED_EVENT=baseline-taken", fmt::format(FALCON_PROGRAM " {} 4 6", kind));
      EXPECT_EQ(outcome.code, 0) << outcome.errors;
      EXPECT_EQ(outcome.output, "");
      EXPECT_THAT(outcome.errors, IsEmpty());
      events = contentOf("events");
      EXPECT_THAT(events, HasSubstr("the job has 4 ranks and 3 communicators")) << kind;
      EXPECT_THAT(events, HasSubstr("\"kind\":\"baseline-taken\"")) << kind;
    }
    EXPECT_THAT(events, HasSubstr("no fail-slows were named")) << kind;
  }
}

TEST_F(Preload, AJobWhoseFirstRankIsKilledIsSaidToHaveEnded) {
  const Outcome outcome = run(on(), FALCON_PROGRAM " job-losing-first 4 6");
  EXPECT_EQ(outcome.code, 1) << "ranks that failed";
  const std::string events = contentOf("events");
  const auto timesSaid = [&](const std::string& kind) {
    const std::regex said("\"kind\":\"" + kind + "\"");
    return std::distance(std::sregex_iterator(events.begin(), events.end(), said), std::sregex_iterator());
  };
  EXPECT_EQ(timesSaid("job-started"), 1) << events;
  EXPECT_EQ(timesSaid("job-ended"), 1) << events;
  EXPECT_THAT(events, HasSubstr("since its controller died"));
}

TEST_F(Preload, AProcessMayExitWhileItsThreadsAreInCalls) {
  for (int round = 0; round < 10; ++round) {
    const Outcome outcome = run(on(), FALCON_ENDING_PROGRAM " exit");
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, "");
    EXPECT_THAT(outcome.errors, IsEmpty());
  }
}

TEST_F(Preload, ACallThatWasHeldDoesNotReachACommunicatorThatWasAborted) {
  const Outcome outcome = run(on(), FALCON_ENDING_PROGRAM " abort");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "held: 0\nthe call: 5, the next group: 0\n") << "ncclSuccess, ncclInvalidUsage";
}

TEST_F(Preload, NorDoesOneThroughOurLibrary) {
  for (const char* what : {"abort", "abort-group"}) {
    const Outcome outcome = run(fmt::format("LD_PRELOAD={} NCCL_FALCON=1 NCCL_FALCON_JOB={} NCCL_FALCON_ENGINE=vendor "
                                            "NCCL_FALCON_VENDOR_LIBRARY={}",
                                            FALCON_OWN_LIBRARY, job(), FALCON_VENDOR),
                                fmt::format(FALCON_ENDING_PROGRAM " {}", what));
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, "held: 0\nthe call: 5, the next group: 0\n") << what;
  }
}

// The vendor has the group's calls, and looks at their communicators to clear them away too.
TEST_F(Preload, AGroupThatWasHeldIsDroppedBeforeACommunicatorOfItIsAborted) {
  const Outcome outcome = run(on(), FALCON_ENDING_PROGRAM " abort-group");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "held: 0\nthe call: 5, the next group: 0\n") << "ncclSuccess, ncclInvalidUsage";
  EXPECT_THAT(outcome.errors, HasSubstr("a group is dropped"));
}

TEST_F(Preload, ACommunicatorThatGrewIsWatched) {
  for (const char* kind : {"job-growing", "job-growing-silently"}) {
    std::filesystem::remove(file("events"));
    const Outcome outcome = run(on(), fmt::format(FALCON_PROGRAM " {} 4 4", kind));
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, "");
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_THAT(contentOf("events"), HasSubstr("the job has 4 ranks and 3 communicators")) << kind;
  }
}

TEST_F(Preload, WhatGrowsWithoutFalconOnOneSideIsNotWatchedAndGoesOn) {
  const Outcome outcome = run(off, FALCON_PROGRAM " job-growing 3 1");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "");
}

TEST_F(Preload, WithCommIdRanksMeetWhereTheyAreTold) {
  const std::string environment = on() + " NCCL_COMM_ID=127.0.0.1:4 NCCL_FALCON_SECRET=test";
  const test::ReservedPort port;
  const std::string told = fmt::format("{} NCCL_FALCON_COMM_ID={}", environment, port.text());
  for (const auto& [kind, communicators] : {std::pair{"job", 3}, {"job-twice", 4}}) {
    std::filesystem::remove(file("events"));
    const Outcome outcome = run(told, fmt::format(FALCON_PROGRAM " {} 4 5", kind));
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, "");
    EXPECT_THAT(outcome.errors, IsEmpty());
    EXPECT_THAT(contentOf("events"), HasSubstr(fmt::format("the job has 4 ranks and {} communicators", communicators)))
        << kind;
  }
}

TEST_F(Preload, WithCommIdAndNoPlaceToMeetOneLineSaysSo) {
  const std::string environment = on() + " NCCL_COMM_ID=127.0.0.1:4";
  const Outcome silent = run(environment, FALCON_PROGRAM " job-twice 2 1");
  EXPECT_EQ(silent.code, 0) << silent.errors;
  EXPECT_EQ(silent.output, "");
  EXPECT_THAT(silent.errors, IsEmpty());
  const Outcome told = run(environment + " NCCL_DEBUG=INFO", FALCON_PROGRAM " job-twice 2 1");
  const std::regex line("NCCL INFO communicators that are made by NCCL_COMM_ID are not watched.*NCCL_FALCON_COMM_ID");
  EXPECT_EQ(std::distance(std::sregex_iterator(told.errors.begin(), told.errors.end(), line), {}), 2)
      << "one of each process: " << told.errors;
  const Outcome wrong = run(environment + " NCCL_FALCON_COMM_ID=nonsense", FALCON_PROGRAM " job 2 1");
  EXPECT_EQ(wrong.code, 0);
  EXPECT_THAT(wrong.errors, AllOf(HasSubstr("NCCL WARN NCCL_FALCON_COMM_ID=nonsense: "), HasSubstr("not watched")));
  const Outcome elsewhere =
      run(environment + " NCCL_FALCON_COMM_ID=198.51.100.7:4444 NCCL_FALCON_SECRET=test", FALCON_PROGRAM " job 2 1");
  EXPECT_EQ(elsewhere.code, 0);
  EXPECT_THAT(elsewhere.errors, AllOf(HasSubstr("cannot open the rendezvous that NCCL_FALCON_COMM_ID names"),
                                      HasSubstr("198.51.100.7:4444")));
  EXPECT_EQ(elsewhere.errors.find("rank 0"), elsewhere.errors.rfind("rank 0")) << "once: " << elsewhere.errors;
}

TEST_F(Preload, TheVendorsIdIsAsItWasWithCommId) {
  const std::string set = " NCCL_COMM_ID=127.0.0.1:4";
  const Outcome without = run(set, FALCON_PROGRAM " id");
  ASSERT_THAT(without.output, HasSubstr("76")) << "the letters of the stand-in";
  EXPECT_EQ(run(on() + set + " NCCL_FALCON_COMM_ID=127.0.0.1:5", FALCON_PROGRAM " id").output, without.output);
  EXPECT_NE(run(on(), FALCON_PROGRAM " id").output, without.output) << "Falcon's part is seen";
}

TEST_F(Preload, AProgramTellsFalconWhatItDoes) {
  std::string environment = on() + " NCCL_FALCON_CHECKPOINT_DIR=" + file("checkpoints") + " AWAIT_HEALTH=1";
#ifdef FALCON_BINARY
  environment += fmt::format(" BEFORE_THE_END='" FALCON_BINARY " trace --job {} -o {}'", job(), file("trace.json"));
#endif
  const Outcome outcome = run(environment, FALCON_PROGRAM " job-told 3 6");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
#ifdef FALCON_BINARY
  EXPECT_EQ(outcome.output, "0\n");
  // What it says of a call is there, beside the call.
  const std::string trace = contentOf("trace.json");
  for (const char* label : {R"("tag":4711)", R"("group":5)", R"("iteration":3)"}) EXPECT_THAT(trace, HasSubstr(label));
#endif
  EXPECT_THAT(contentOf("events"), HasSubstr("the job has 3 ranks"));
  EXPECT_THAT(contentOf("checkpoints/restart.json"), HasSubstr(R"("leave_out":[],"checkpoint":{"folder":)"));
}

TEST_F(Preload, ThePlanIsTheEqualSplitWhereNobodyIsWatched) {
  const Outcome outcome = run(off, "env NCCL_FALCON_JOB=none " FALCON_PROGRAM " job-told 3 1");
  EXPECT_THAT(outcome.output, AllOf(Not(HasSubstr("plan:")), HasSubstr("ncclFalconSuspend")));
}

TEST_F(Preload, TheExtensionAnswersOnAndOff) {
  EXPECT_EQ(run("", FALCON_PROGRAM " extension").output, "not there\n");
  const std::string same =
      "GetVersion 0\nGetVersion(NULL) 4\nRangeBegin 0\nRangeBegin(NULL) 4\nRangeEnd 0\n"
      "IterationWork 0\nIterationWork(0) 4\n"
      "RegisterState(NULL) 4\nCheckpointSynchronize(NULL) 4\nWanted(NULL) 4\nRestart(NULL) 4\n"
      "RegisterReshape 5\nReshape 5\nRole(NULL) 4\nRoles(NULL) 4\nGetHostUniqueId 5\n"
      "StreamCreate 5\nStreamQuery(NULL) 0\nStreamSynchronize(other) 4\n"
      "StreamCallback(NULL stream) 0\nStreamCallback(other) 4\nStreamCallback(NULL) 4\nRedOpCreateBitwise 5\n"
      "StreamDestroy(other) 4\n"
      "TrapCallbackAdd 0\nTrapCallbackRemove 0\nTrapCallbackAdd(NULL) 4\n"
      "IterationBegin without a layout 5\nRegisterLayout of two ranks 4\nRegisterLayout of no size 4\n"
      "RegisterLayout(NULL) 4\nRegisterLayout 0\nIterationBegin 0\n8 from 0, 1\n"
      "IterationCallback(NULL) 4\nIterationCallback of no flag 4\nIterationCallback 0\n"
      "1 told, health 0, wanted 0, 8 from 0\nIterationBegin afterwards 5\n1 told\n"
      "Suspend(NULL) 4\n";
  const Outcome without = run(off + " NCCL_FALCON_OFF=1", FALCON_PROGRAM " extension");
  EXPECT_EQ(without.output, same +
                                "Suspend 5\nRegisterState 0\nCheckpoint 5\nCheckpointSynchronize 0\nRestore 5\n"
                                "Wanted 0\n0\nRestart 5\nUnregisterState 0\n");
  EXPECT_THAT(without.errors, AllOf(HasSubstr("the preload library moves no host memory"),
                                    HasSubstr("dataParallelSize is 2, not 1 to 1"), HasSubstr("Falcon is off")));
  EXPECT_THAT(without.errors, HasSubstr("layout->size is 8; set it to sizeof(ncclFalconLayout_t)"));
  EXPECT_EQ(run(on(), FALCON_PROGRAM " extension").output, same);
}

// Whose functions a program gets when both shapes are there.
TEST_F(Preload, BeforeOurOwnLibraryTheExtensionIsThatLibrarys) {
  const Outcome alone = run("", FALCON_OWN_PROGRAM " extension");
  ASSERT_THAT(alone.output, HasSubstr("StreamCreate 0\n")) << "it has host streams";
  EXPECT_EQ(run(off, FALCON_OWN_PROGRAM " extension").output, alone.output);
}

TEST_F(Preload, TheFrontIsSmallAndNeedsOnlyTheOldestLibraries) {
  EXPECT_LT(std::filesystem::file_size(FALCON_PRELOAD), 100'000u);
  const std::string needed = run("", "readelf -dW " FALCON_PRELOAD).output;
  for (const char* library : {"libstdc++", "libgcc", "libpthread", "libdl"})
    EXPECT_THAT(needed, Not(HasSubstr(library)));
  const std::string versions = run("", "readelf -VW " FALCON_PRELOAD).output;
  const std::regex version("GLIBC_([0-9]+)\\.([0-9]+)");
  int count = 0;
  for (auto each = std::sregex_iterator(versions.begin(), versions.end(), version); each != std::sregex_iterator();
       ++each, ++count)
    EXPECT_LE(std::stoi((*each)[1]) * 100 + std::stoi((*each)[2]), 204) << each->str();
  EXPECT_GT(count, 0);
}

TEST_F(Preload, ChildrenThatAreEndedWithoutACallLeaveNoThread) {
  for (const char* kind : {"unused", "unused-moved"}) {
    const Outcome outcome = run(on(), fmt::format(FALCON_PROGRAM " {} 100", kind));
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, "no threads are left\n") << kind;
    EXPECT_THAT(outcome.errors, IsEmpty());
  }
}

TEST_F(Preload, ARankWithoutFalconDoesNotHoldTheOthers) {
  const Outcome outcome = run(on(), FALCON_PROGRAM " job-without-one 3 1");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "");
}

TEST_F(Preload, ARankWithoutAThreadForOneSplitMissesThatOneAlone) {
  std::string environment = on() + " NCCL_DEBUG=INFO";
  environment.insert(environment.find('=') + 1, FALCON_NO_THREADS ":");
  const Outcome outcome = run(environment, FALCON_PROGRAM " job-missed-split 4 4");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "") << outcome.errors;
  const std::regex missed("WARN a communicator is not watched: there was no thread or no memory for it on rank 1\n");
  EXPECT_EQ(std::distance(std::sregex_iterator(outcome.errors.begin(), outcome.errors.end(), missed), {}), 3)
      << "on the others: " << outcome.errors;
  const std::regex watched("rank . of 2 is watched");
  EXPECT_EQ(std::distance(std::sregex_iterator(outcome.errors.begin(), outcome.errors.end(), watched), {}), 4)
      << "the second halves: " << outcome.errors;
}

TEST_F(Preload, AnIdWithoutRoomIsNotWatchedAndNotChanged) {
  const std::string greedy = " LD_LIBRARY_PATH=" FALCON_GREEDY_FOLDER;
  const Outcome without = run(greedy, FALCON_PROGRAM " job 2 1");
  ASSERT_EQ(without.code, 0) << without.errors;
  const Outcome with = run(on() + greedy, FALCON_PROGRAM " job 2 1");
  EXPECT_EQ(with.code, 0) << with.errors;
  EXPECT_THAT(with.errors, HasSubstr("are not watched"));
}

TEST_F(Preload, CommunicatorsThatAreEndedBeforeAllHaveComeLeaveNoDescriptor) {
  const Outcome outcome = run(on(), FALCON_PROGRAM " ended 200");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "no descriptors are left\n");
  EXPECT_THAT(outcome.errors, IsEmpty());
}

TEST_F(Preload, WhatTheVendorLacksIsInvalidUsage) {
  const Outcome outcome = run(off, FALCON_PROGRAM " lacking");
  EXPECT_EQ(outcome.output, "5\n");
  EXPECT_THAT(outcome.errors, HasSubstr("ncclGatherConfig is not in the library"));
}

// Also where a plugin jumps to NCCL, so that its own caller is seen, which has no NCCL.
TEST_F(Preload, TwoLibrariesInOneProgramEachGetTheirCallers) {
  const Outcome without = run("", FALCON_PLUGIN_HOST);
  ASSERT_EQ(without.code, 0) << without.errors;
  ASSERT_THAT(without.output, AllOf(HasSubstr("vendor: AllReduce"), HasSubstr("second_vendor: AllReduce")));
  ASSERT_EQ(std::count(without.output.begin(), without.output.end(), '\n'), 16 + 2 * 7) << without.output;
  for (const std::string& environment : {off, on()}) {
    const Outcome outcome = run(environment, FALCON_PLUGIN_HOST);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, without.output) << environment;
    EXPECT_THAT(outcome.errors, IsEmpty());
  }
}

TEST_F(Preload, BeforeOurOwnLibraryItStepsAside) {
  const Outcome outcome = run(on(), FALCON_OWN_PROGRAM " idle");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("core not loaded"));
}

// The vendor's own calls of its functions stay within it.
TEST_F(Preload, OurOwnLibraryBeforeAVendorsThatIsOpenedByItsPathLeavesItAlone) {
  const std::string command = FALCON_OPENING_PROGRAM " " FALCON_VENDOR;
  const Outcome without = run("", command);
  ASSERT_THAT(without.output, AllOf(HasSubstr("vendor: Broadcast"), HasSubstr("vendor: Bcast ends\n")));
  for (const char* falcon : {"0", "1"}) {
    const Outcome with = run(fmt::format("LD_PRELOAD={} NCCL_FALCON={}", FALCON_OWN_LIBRARY, falcon), command);
    EXPECT_EQ(with.code, 0) << with.errors;
    EXPECT_EQ(withoutAddresses(with.output), withoutAddresses(without.output));
    EXPECT_THAT(with.errors, IsEmpty());
  }
}

// Who is in a constructor has the loader's lock, which the first call of another thread wants.
TEST_F(Preload, AFirstCallAndOneFromAConstructorDoNotWaitForEachOther) {
  for (const char* library : {FALCON_PRELOAD, FALCON_OWN_LIBRARY})
    for (int microseconds = 0; microseconds < 400; microseconds += 25) {
      const Outcome outcome = run(
          fmt::format("LD_PRELOAD={} NCCL_FALCON=1 NCCL_FALCON_JOB={} NCCL_FALCON_ENGINE=vendor "
                      "NCCL_FALCON_VENDOR_LIBRARY={}",
                      library, job(), FALCON_VENDOR),
          fmt::format("timeout 60 {} none meets {} {}", FALCON_OPENING_PROGRAM, FALCON_CALLING_PLUGIN, microseconds));
      EXPECT_EQ(outcome.code, 0) << library << " " << microseconds << " us: " << outcome.errors;
      EXPECT_EQ(outcome.output, "");
    }
}

/// A program that is linked to the vendor's library, before which the preload library stands, and opens our own one.
class BothShapes : public Preload {
 protected:
  Outcome runBoth(const char* order, const std::string& more = "") const {
    return run(fmt::format("{} NCCL_FALCON_ENGINE=vendor NCCL_FALCON_VENDOR_LIBRARY={} {}", on(), FALCON_VENDOR, more),
               fmt::format("{} {} {}", FALCON_OPENING_PROGRAM, FALCON_OWN_LIBRARY, order));
  }
};

TEST_F(BothShapes, WhatTheLaterOneSendsToTheVendorIsHandedOver) {
  const Outcome both = runBoth("last");
  EXPECT_EQ(both.code, 0) << both.errors;
  EXPECT_THAT(both.output, AllOf(HasSubstr("linked: watched\n"), HasSubstr("opened: watched\n")));
  EXPECT_THAT(both.output, HasSubstr(" 2 0 root=0 0x5\n"));  // the vendor's, once
  EXPECT_THAT(both.errors, HasSubstr("what this libnccl.so.2 sends to the vendor's NCCL is watched there"));
  EXPECT_EQ(std::count(both.errors.begin(), both.errors.end(), '\n'), 1) << both.errors;
}

TEST_F(BothShapes, TheLaterOnesCommunicatorsOnHostMemoryAreNotWatched) {
  const Outcome both = runBoth("last", "NCCL_FALCON_ENGINE=host");
  EXPECT_EQ(both.code, 0) << both.errors;
  EXPECT_THAT(both.output, HasSubstr("linked: watched\n"));
  EXPECT_EQ(std::count(both.errors.begin(), both.errors.end(), '\n'), 1) << both.errors;
}

TEST_F(BothShapes, WhatComesToThePreloadLibraryLaterIsWatchedByTheOther) {
  const Outcome both = runBoth("first");
  EXPECT_EQ(both.code, 0) << both.errors;
  EXPECT_THAT(both.output, AllOf(HasSubstr("opened: watched\n"), HasSubstr("linked: watched\n")));
  EXPECT_THAT(both.output, AllOf(HasSubstr("vendor: Bcast ends\n"), HasSubstr("core not loaded\n")));
  EXPECT_THAT(both.errors, IsEmpty());
}

TEST_F(BothShapes, OfAnotherBuildTheLaterOneOnlyMovesData) {
  const Outcome both = run(fmt::format("LD_PRELOAD={} NCCL_FALCON=1 NCCL_FALCON_JOB={} NCCL_FALCON_ENGINE=vendor "
                                       "NCCL_FALCON_VENDOR_LIBRARY={}",
                                       FALCON_OTHER_FRONT, job(), FALCON_VENDOR),
                           FALCON_OPENING_PROGRAM " " FALCON_OWN_LIBRARY " alone");
  EXPECT_EQ(both.code, 0) << both.errors;
  EXPECT_THAT(both.output, AllOf(HasSubstr("opened: not watched\n"), HasSubstr("vendor: Broadcast")));
  EXPECT_THAT(both.errors, HasSubstr("NCCL Falcon watches in this process already, and is of another build"));
  EXPECT_EQ(std::count(both.errors.begin(), both.errors.end(), '\n'), 1) << both.errors;
}

TEST_F(BothShapes, OffIsNothing) {
  const Outcome both = runBoth("last", "NCCL_FALCON=0");
  EXPECT_EQ(both.code, 0) << both.errors;
  EXPECT_THAT(both.output, AllOf(HasSubstr("linked: not watched\n"), HasSubstr("opened: not watched\n")));
  EXPECT_THAT(both.errors, IsEmpty());
}

#ifdef FALCON_BINARY
TEST_F(Preload, BeforeAnEarlierVersionOfOursItStepsAsideToo) {
  const std::string environment = on() + " LD_LIBRARY_PATH=" FALCON_EARLIER_FOLDER;
  const Outcome idle = run(environment, FALCON_PROGRAM " idle");
  EXPECT_EQ(idle.code, 0);
  EXPECT_THAT(idle.output, HasSubstr("core not loaded"));
  EXPECT_THAT(idle.errors, HasSubstr("is NCCL Falcon of another version than libnccl-falcon.so"));
  EXPECT_EQ(std::count(idle.errors.begin(), idle.errors.end(), '\n'), 1) << idle.errors;
  const Outcome lacking = run(environment, FALCON_PROGRAM " extension");
  EXPECT_EQ(lacking.code, 0);
  EXPECT_THAT(lacking.output, AllOf(HasSubstr("GetVersion 0\n"), HasSubstr("RangeEnd 5\n")));
  EXPECT_THAT(lacking.errors, HasSubstr("ncclFalconRangeEnd is not in the version of NCCL Falcon"));
}

// Only an interpreter is asked where its packages are, by running it.
TEST_F(Preload, ExecChecksAProgramWithoutStartingIt) {
  const std::string program = file("python_train.sh");
  std::ofstream(program) << "#!/bin/sh\ntouch " << file("started") << "\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  run("", FALCON_BINARY " exec --check -- " + program);
  run("", FALCON_BINARY " exec --print -- " + program);
  EXPECT_FALSE(std::filesystem::exists(file("started")));
}

TEST_F(Preload, ExecSetsAllThatIsNeeded) {
  EXPECT_THAT(run("", FALCON_BINARY " exec -- " FALCON_PROGRAM " idle").output, HasSubstr("core loaded"));
  EXPECT_THAT(run("NCCL_FALCON=0", FALCON_BINARY " exec -- " FALCON_PROGRAM " idle").output,
              HasSubstr("core not loaded"));
  EXPECT_EQ(run("", FALCON_BINARY " exec --print -- prog --x 'a b'").output,
            "env LD_PRELOAD=" FALCON_PRELOAD " NCCL_FALCON=1 prog --x 'a b'\n");
  EXPECT_EQ(run("LD_PRELOAD=libm.so.6 NCCL_FALCON=0", FALCON_BINARY " exec --print -- prog").output,
            "env LD_PRELOAD=" FALCON_PRELOAD ":libm.so.6 prog\n");
  EXPECT_EQ(run("", FALCON_BINARY " exec -- " FALCON_BINARY " exec --print -- prog").output,
            "env LD_PRELOAD=" FALCON_PRELOAD " prog\n")
      << "once";
  EXPECT_EQ(run("", FALCON_BINARY " exec -- no-such-program").code, 127);
  EXPECT_EQ(run("", FALCON_BINARY " exec").code, 2);
  EXPECT_EQ(run("", FALCON_BINARY " exec --no-such-option -- ls").code, 2);
  EXPECT_EQ(run("", FALCON_BINARY " exec -- sh -c 'exit 7'").code, 7) << "it has become the program";
}

TEST_F(Preload, ExecSaysWhichLibraryAProgramWouldLoad) {
  const Outcome linked = run("", FALCON_BINARY " exec --check -- " FALCON_PROGRAM);
  EXPECT_EQ(linked.code, 0) << linked.errors;
  EXPECT_THAT(linked.output, AllOf(HasSubstr("fakes/vendor/libnccl.so.2: version 2.32.3"), HasSubstr("(linked)")));
  EXPECT_EQ(run("", FALCON_BINARY " exec --check -- env -i -u HOME X=1 " FALCON_PROGRAM).output, linked.output);
  for (const char* text : {"-S '-u HOME X=1 " FALCON_PROGRAM " calls'", "-S'" FALCON_PROGRAM " calls'",
                           "--split-string='X=1 " FALCON_PROGRAM "'", "--split-string " FALCON_PROGRAM})
    EXPECT_EQ(run("", fmt::format("{} exec --check -- env {}", FALCON_BINARY, text)).output, linked.output) << text;
  EXPECT_THAT(run("", FALCON_BINARY " exec --check -- env X=1").errors, HasSubstr("env starts no program here"));
  const Outcome none = run("", FALCON_BINARY " exec --check -- ls");
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.output, HasSubstr("no NCCL was found that ls would load"));
  const Outcome own = run("", FALCON_BINARY " exec --check -- " FALCON_OWN_PROGRAM);
  EXPECT_THAT(own.output, HasSubstr("NCCL Falcon's own"));
  EXPECT_THAT(run("", FALCON_BINARY " doctor --library " FALCON_PRELOAD).output, HasSubstr("is no library of NCCL"));
  const std::string path = linked.output.substr(0, linked.output.find(':'));
  const std::string folder = std::filesystem::path(path).parent_path();
  const Outcome here = run("-C " + folder, FALCON_BINARY " doctor --library libnccl.so.2");
  EXPECT_THAT(here.output, HasSubstr("version 2.32.3")) << "the one in this folder, and not Falcon's";
  EXPECT_THAT(here.output, Not(HasSubstr("NCCL Falcon's own")));
  EXPECT_EQ(run("", FALCON_BINARY " doctor --json --library " + path).code, 2);
  EXPECT_THAT(run("", FALCON_BINARY " exec --check -- \"$(printf 'no\\033such')\"").errors, Not(HasSubstr("\x1b")));
}

TEST_F(Preload, ExecSaysWhatTheEnvironmentMakesOfIt) {
  const Outcome off = run("NCCL_FALCON=0", FALCON_BINARY " exec --check -- " FALCON_PROGRAM);
  EXPECT_THAT(off.output, HasSubstr("but NCCL_FALCON=0 is set, which keeps it off"));
  EXPECT_THAT(run("NCCL_FALCON=", FALCON_BINARY " exec --print -- prog").output, HasSubstr(" NCCL_FALCON=1 prog"));
  const Outcome vendors = run("NCCL_FALCON_ENGINE=vendor", FALCON_BINARY " exec --check -- " FALCON_OWN_PROGRAM);
  EXPECT_THAT(vendors.output, HasSubstr("the vendor's library moves the data (NCCL_FALCON_ENGINE=vendor"));
  const std::string own = std::filesystem::path(FALCON_PRELOAD).replace_filename("libnccl.so.2");
  const Outcome replaced = run("LD_PRELOAD=" + own, FALCON_BINARY " exec --check -- " FALCON_PROGRAM);
  EXPECT_THAT(replaced.output, HasSubstr("NCCL Falcon's own"));
  EXPECT_EQ(run("", FALCON_BINARY " exec --check -- /tmp").code, 1);
}

// The loader's list ends there.
TEST_F(Preload, ExecSaysThatTheLoaderIgnoresItWhereAProgramHasMoreRights) {
  if (getuid() != 0) GTEST_SKIP() << "only root can give a program another user";
  ASSERT_TRUE(std::filesystem::copy_file(FALCON_PROGRAM, file("program")));
  ASSERT_EQ(chown(file("program").c_str(), 12345, 12345), 0);
  ASSERT_EQ(chmod(file("program").c_str(), 04755), 0);
  const Outcome outcome = run("", FALCON_BINARY " exec --check -- " + file("program"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("the loader ignores LD_PRELOAD there"));
}

TEST_F(Preload, ExecRefusesAFolderWithASpace) {
  for (const char* part : {"bin", "lib"}) std::filesystem::create_directories(file("a b") + "/" + part);
  std::filesystem::copy_file(FALCON_BINARY, file("a b") + "/bin/falcon");
  std::filesystem::copy_file(FALCON_PRELOAD, file("a b") + "/lib/libnccl-falcon.so");
  for (const char* how : {"--", "--print --", "--check --"}) {
    const Outcome outcome = run("", "'" + file("a b") + "/bin/falcon' exec " + how + " true");
    EXPECT_EQ(outcome.code, 1) << how;
    EXPECT_THAT(outcome.errors, HasSubstr("LD_PRELOAD is a list that ends words at spaces and colons")) << how;
  }
}

// What is linked to NCCL has its functions by way of the loader.
TEST_F(Preload, DoctorTellsALibraryOfNcclFromOneThatIsLinkedToIt) {
  EXPECT_THAT(run("", FALCON_BINARY " doctor --library " FALCON_VENDOR).output, HasSubstr("version 2.32.3; Falcon"));
  const Outcome linked = run("", FALCON_BINARY " doctor --library " FALCON_PLUGIN);
  EXPECT_EQ(linked.code, 1);
  EXPECT_THAT(linked.output, HasSubstr("is no library of NCCL"));
}

TEST_F(Preload, DoctorLooksAtFilesOnly) {
  ASSERT_EQ(mkfifo(file("pipe").c_str(), 0600), 0);
  EXPECT_THAT(run("", FALCON_BINARY " doctor --library " + file("pipe")).output, HasSubstr("is no file"));
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
