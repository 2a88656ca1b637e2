#include "report/metrics_text.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

namespace falcon::report {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(MetricsText, CountsMitigationsByWhatWasDoneAndHowItEnded) {
  JobMetrics metrics;
  metrics.mitigations = {{{"reroute", "applied"}, 2}, {{"split", "undone"}, 1}};
  const std::string text = metricsText(metrics);
  EXPECT_TRUE(contains(text, R"(action="reroute",result="applied"} 2)")) << text;
  EXPECT_TRUE(contains(text, R"(action="split",result="undone"} 1)")) << text;
  EXPECT_TRUE(contains(text, R"(action="split",result="refused"} 0)")) << text;
  EXPECT_FALSE(contains(text, R"(action="any")")) << text;
}

// Or a file that outlives its job says for ever that all is well, or that it is not.
TEST(MetricsText, SaysWhenItWasWritten) {
  JobMetrics metrics;
  metrics.job = "a";
  metrics.writtenAt = 1764080000.25;
  EXPECT_TRUE(contains(metricsText(metrics), "job=\"a\"} 1764080000.250\n")) << metricsText(metrics);
}

TEST(MetricsText, HasNoIterationTimeWhereNoneIsKnown) {
  EXPECT_FALSE(contains(metricsText({}), "nccl_falcon_iteration_seconds"));
}

TEST(MetricsText, IsAnExpositionWithoutDoubles) {
  JobMetrics metrics;
  metrics.iterationSeconds = 0.5;
  metrics.job = "a \"quoted\\\" job\nof two lines";
  metrics.mitigations = {{{"split", "applied"}, 3}};
  const std::regex comment("# (HELP [a-z_]+ .+|TYPE [a-z_]+ (gauge|counter))");
  const std::regex sample(R"re([a-z_]+\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)+\} [0-9.e+-]+)re");
  std::set<std::string> series;
  std::istringstream lines(metricsText(metrics));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) {
      EXPECT_TRUE(std::regex_match(line, comment)) << line;
      continue;
    }
    EXPECT_TRUE(std::regex_match(line, sample)) << line;
    EXPECT_TRUE(series.insert(line.substr(0, line.rfind(' '))).second) << line;
  }
  EXPECT_EQ(series.size(), 19u);
}

}  // namespace
}  // namespace falcon::report
