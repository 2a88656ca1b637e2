// Our profiler plugin in the vendor's library, where Falcon stands before that: what it tells is the job's.
#include <gmock/gmock.h>

#include <cstdio>

#include "preload/preloaded.h"

namespace falcon::preload {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using PreloadProfiler = Preload;

std::string fake(int version) {
  return fmt::format("{}/libnccl-profiler-fake{}.so", FALCON_FAKE_PLUGINS, version);
}

#ifdef FALCON_BINARY
/// And not the whole trace where it fails.
void expectTransfers(const std::string& trace) {
  for (const char* event : {R"("name":"works")", R"("name":"to )"})
    EXPECT_NE(trace.find(event), std::string::npos) << event;
}

TEST_F(PreloadProfiler, WhatTheVendorsChannelsAndProxiesDoIsInTheJobsLogWhileItIsProfiled) {
  for (const int version : {4, 7}) {
    std::filesystem::remove(file("events"));
    const Outcome outcome =
        run(fmt::format("{} VENDOR_PROFILER_VERSION={} SHOW_PROFILED=1 BEFORE_THE_END='{} trace --job {} -o {}'", on(),
                        version, FALCON_BINARY, job(), file("trace.json")),
            FALCON_PROGRAM " job 4 6");
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    int traced = -1, told = 0, untold = 0;
    EXPECT_EQ(std::sscanf(outcome.output.c_str(), "%d %d told, %d untold", &traced, &told, &untold), 3)
        << outcome.output;
    EXPECT_EQ(traced, 0);
    EXPECT_GT(told, 10) << version;
    EXPECT_GT(untold, told) << "most of the time it is only tracked";
    expectTransfers(contentOf("trace.json"));
    const std::string events = contentOf("events");
    EXPECT_THAT(events, HasSubstr("the job has 4 ranks and 3 communicators")) << version;
    EXPECT_THAT(events, HasSubstr("\"kind\":\"baseline-taken\"")) << version;
    EXPECT_THAT(events, HasSubstr("no fail-slows were named")) << version;
  }
}
#endif

#ifdef FALCON_BINARY
TEST_F(PreloadProfiler, TheVendorBehindOurOwnLibraryTellsItToo) {
  const std::string behind =
      fmt::format("NCCL_FALCON_ENGINE=vendor NCCL_FALCON_VENDOR_LIBRARY={} NCCL_FALCON_JOB={} NCCL_FALCON_EVENTS={}",
                  FALCON_VENDOR, job(), file("events"));
  const Outcome outcome = run(fmt::format("{} NCCL_FALCON=1 BEFORE_THE_END='{} trace --job {} -o {}'", behind,
                                          FALCON_BINARY, job(), file("trace.json")),
                              FALCON_OWN_PROGRAM " job 4 6");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.output, "0\n");
  EXPECT_THAT(outcome.errors, IsEmpty());
  expectTransfers(contentOf("trace.json"));
  EXPECT_THAT(contentOf("events"),
              AllOf(HasSubstr("the job has 4 ranks and 3 communicators"), HasSubstr("\"kind\":\"baseline-taken\""),
                    HasSubstr("no fail-slows were named")));
  EXPECT_THAT(run(behind + " NCCL_FALCON=1", FALCON_OWN_PROGRAM " idle").output, HasSubstr("profiler loaded"));
  EXPECT_THAT(run(behind + " NCCL_FALCON=0", FALCON_OWN_PROGRAM " idle").output, HasSubstr("profiler not loaded"));
}
#endif

TEST_F(PreloadProfiler, IsThereWhereFalconIsOnAndNotSwitchedOff) {
  const auto idle = [&](const std::string& environment) { return run(environment, FALCON_PROGRAM " idle").output; };
  EXPECT_THAT(idle(on()), HasSubstr("core loaded, profiler loaded\n"));
  EXPECT_THAT(idle(on() + " NCCL_FALCON_PROFILER=off"), HasSubstr("core loaded, profiler not loaded\n"));
  EXPECT_THAT(idle(on() + " NCCL_PROFILER_PLUGIN=none"), HasSubstr("core loaded, profiler not loaded\n"));
  EXPECT_THAT(idle(off), HasSubstr("core not loaded, profiler not loaded\n"));
  EXPECT_THAT(idle(off + " NCCL_FALCON=0"), HasSubstr("core not loaded, profiler not loaded\n"));
}

TEST_F(PreloadProfiler, OneThatTheProgramHasKeepsItsPlaceAndIsChainedWhereOursIsNamed) {
  const std::string theirs = fmt::format(" FAKE_PROFILER={} NCCL_PROFILER_PLUGIN={}", fake(6), fake(6));
  const Outcome kept = run(on() + theirs + " NCCL_DEBUG=INFO", FALCON_PROGRAM " idle");
  EXPECT_EQ(kept.code, 0);
  EXPECT_THAT(kept.output, AllOf(HasSubstr("profiler not loaded\n"), HasSubstr("1 init(s) of another, told\n")));
  EXPECT_THAT(kept.errors, AllOf(HasSubstr("has the vendor's one place for a profiler"),
                                 HasSubstr("NCCL_FALCON_CHAINED_PROFILER=" + fake(6))));
  for (const std::string& environment : {on(), off}) {
    const Outcome chained =
        run(fmt::format("{} FAKE_PROFILER={} NCCL_PROFILER_PLUGIN={} NCCL_FALCON_CHAINED_PROFILER={}", environment,
                        fake(6), FALCON_PROFILER, fake(6)),
            FALCON_PROGRAM " idle");
    EXPECT_EQ(chained.code, 0) << chained.errors;
    EXPECT_THAT(chained.output, AllOf(HasSubstr("profiler loaded\n"), HasSubstr("1 init(s) of another, told\n")))
        << environment;
    EXPECT_THAT(chained.errors, IsEmpty());
  }
}

#ifdef FALCON_BINARY
TEST_F(PreloadProfiler, ExecChainsTheUsersWhereBothSidesAreKnown) {
  const auto printed = [&](const std::string& environment) {
    return run(environment, FALCON_BINARY " exec --print -- " FALCON_PROGRAM).output;
  };
  const std::string theirs = "NCCL_PROFILER_PLUGIN=" + fake(6);
  EXPECT_THAT(printed(theirs), HasSubstr(fmt::format(" NCCL_PROFILER_PLUGIN={} NCCL_FALCON_CHAINED_PROFILER={} ",
                                                     FALCON_PROFILER, fake(6))));
  for (const std::string& environment :
       {std::string(), theirs + " NCCL_FALCON=0", theirs + " NCCL_FALCON_PROFILER=off",
        theirs + " NCCL_FALCON_CHAINED_PROFILER=x", std::string("NCCL_PROFILER_PLUGIN=none"),
        std::string("NCCL_PROFILER_PLUGIN=/nowhere.so"), std::string("NCCL_PROFILER_PLUGIN=" FALCON_PROFILER),
        theirs + " LD_LIBRARY_PATH=" FALCON_EARLIER_FOLDER})
    EXPECT_THAT(printed(environment), Not(HasSubstr("NCCL_PROFILER_PLUGIN"))) << environment;
  const Outcome outcome = run(fmt::format("{} FAKE_PROFILER={} NCCL_FALCON_JOB={}", theirs, fake(6), job()),
                              FALCON_BINARY " exec -- " FALCON_PROGRAM " idle");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("core loaded, profiler loaded\n"), HasSubstr("1 init(s) of another, told\n")));
}
#endif

// NCCL would have taken it, had it not found ours.
TEST_F(PreloadProfiler, TheDefaultOneAndThatOfANetPluginAreNotShadowed) {
  const std::string folder = file("plugins");
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(fake(7), folder + "/libnccl-profiler.so");
  const std::string found = fmt::format(" LD_LIBRARY_PATH={}", folder);
  const Outcome kept =
      run(fmt::format("{}{} NCCL_DEBUG=INFO FAKE_PROFILER={}/libnccl-profiler.so", on(), found, folder),
          FALCON_PROGRAM " idle");
  EXPECT_THAT(kept.output, AllOf(HasSubstr("profiler not loaded\n"), HasSubstr("1 init(s) of another, told\n")));
  EXPECT_THAT(kept.errors, HasSubstr("libnccl-profiler.so has the vendor's one place for a profiler"));

  std::filesystem::rename(folder + "/libnccl-profiler.so", folder + "/libnccl-net.so");
  const Outcome both = run(
      fmt::format("LD_PRELOAD={}:{}/libnccl-net.so NCCL_FALCON=1 NCCL_FALCON_JOB={}{} FAKE_PROFILER={}/libnccl-net.so",
                  FALCON_PRELOAD, folder, job(), found, folder),
      FALCON_PROGRAM " idle");
  EXPECT_THAT(both.output, AllOf(HasSubstr("profiler loaded\n"), HasSubstr("1 init(s) of another, told\n")));
}

TEST_F(PreloadProfiler, OneThatIsNotSoundIsAsIfThereWereNone) {
  const Outcome outcome =
      run(fmt::format("{} NCCL_DEBUG=WARN NCCL_PROFILER_PLUGIN={} NCCL_FALCON_CHAINED_PROFILER=/nowhere.so", on(),
                      FALCON_PROFILER),
          FALCON_PROGRAM " idle");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("profiler loaded"));
  EXPECT_THAT(outcome.errors, HasSubstr("NCCL_FALCON_CHAINED_PROFILER=/nowhere.so"));
}

}  // namespace
}  // namespace falcon::preload
