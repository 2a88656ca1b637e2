#include "diagnose/host_slowness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace falcon::diagnose {
namespace {

/// Eight ranks on eight processors that used 6 of them, beside others that used 0.5.
HostObservation observed(double ownGrowth, double processorGrowth, double others, double stolen = 0) {
  const HostUse healthy{0.2, 1.2, 6.5, 0};
  HostUse now{0.2 * ownGrowth, 1.2 * processorGrowth, 0, stolen};
  now.busyCores = now.processor / now.iteration + others;
  return {"worker-7", 8, 8, healthy, now, ownGrowth};
}

struct Row {
  const char* what;
  HostObservation seen;
  std::optional<HostCause> cause;
};

TEST(HostSlowness, IsExplainedByTheKernelsAccountOrNotAtAll) {
  const Row rows[] = {
      {"others took what the job lost", observed(1.3, 1.0, 2.0), HostCause::otherPrograms},
      {"and the caches suffered a little", observed(1.3, 1.1, 2.0), HostCause::otherPrograms},
      {"they did, and processors that are busier work more slowly besides", observed(1.6, 1.25, 1.4),
       HostCause::otherPrograms},
      {"the hypervisor did", observed(1.3, 1.0, 0.5, 1.5), HostCause::hypervisor},
      {"all have more to do", observed(1.3, 1.3, 0.5), HostCause::moreProcessorTime},
      {"more to do while others run too: whose fault it is cannot be said", observed(1.3, 1.3, 2.0),
       HostCause::moreProcessorTime},
      {"nobody is slower", observed(1.02, 1.0, 2.0), std::nullopt},
      {"own time grew, and nobody took the processors: a data source or a quota", observed(1.3, 1.0, 0.5),
       std::nullopt},
      {"others grew by less than half of what was lost", observed(1.3, 1.0, 0.9), std::nullopt},
      {"processors stand idle: whoever wants to run can", observed(2.5, 1.0, 2.5), std::nullopt},
  };
  for (const Row& row : rows) {
    const auto found = explanationOf(row.seen);
    ASSERT_EQ(found.has_value(), row.cause.has_value()) << row.what << (found ? ": " + found->evidence : "");
    if (!found) continue;
    EXPECT_EQ(found->cause, *row.cause) << row.what;
    EXPECT_EQ(found->host, "worker-7");
    EXPECT_EQ(found->isCulprit(), *row.cause != HostCause::moreProcessorTime) << row.what;
  }
}

TEST(HostSlowness, WithoutAnAccountNothingIsExplained) {
  HostObservation seen = observed(1.3, 1.0, 2.0);
  seen.healthy.processor = 0;
  EXPECT_FALSE(explanationOf(seen));
}

TEST(HostSlowness, TheEvidenceHasTheNumbers) {
  EXPECT_EQ(explanationOf(observed(1.5, 1.0, 3.0))->evidence,
            "CPU contention from outside: programs that are not of this job use 3.0 of its 8 processors (0.5 when the "
            "job was healthy); its 8 ranks compute 1.50 times longer, with 1.00 times the processor time");
}

TEST(HostSlowness, LeavesWhatGoesBeyondTheSlowestHost) {
  const HostExplanation slow{"a", HostCause::otherPrograms, 1.2, ""}, slower{"b", HostCause::otherPrograms, 1.5, ""};
  EXPECT_DOUBLE_EQ(unexplainedGrowth(1.8, std::vector{slow, slower}), 1.2);
  EXPECT_DOUBLE_EQ(unexplainedGrowth(1.4, std::vector{slow, slower}), 1);
  EXPECT_DOUBLE_EQ(unexplainedGrowth(1.4, {}), 1.4);
}

}  // namespace
}  // namespace falcon::diagnose
