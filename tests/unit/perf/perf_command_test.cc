// The whole command, with ranks as threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "perf/benchmark_case.h"
#include "perf/command.h"

namespace falcon::perf {
namespace {

using testing::HasSubstr;

struct Outcome {
  int exitCode = -1;
  std::string output, errors;
};

/// What `falcon perf WORDS...` does.
Outcome perf(std::vector<std::string> words) {
  Outcome outcome;
  CLI::App app;
  tools::addPerfCommand(app, outcome.exitCode);
  words.insert(words.begin(), "perf");
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  app.parse(words);
  outcome.errors = testing::internal::GetCapturedStderr();
  outcome.output = testing::internal::GetCapturedStdout();
  return outcome;
}

TEST(PerfCommand, WrongValuesAreNamedWithTheirRemedy) {
  const auto refused = [](const std::vector<std::string>& words, const std::string& value, const std::string& remedy) {
    const Outcome outcome = perf(words);
    EXPECT_EQ(outcome.exitCode, 2) << value;
    EXPECT_EQ(outcome.output, "") << value;
    EXPECT_THAT(outcome.errors, HasSubstr(value));
    EXPECT_THAT(outcome.errors, HasSubstr(remedy));
  };
  refused({"all_to_none"}, "all_to_none", "all_reduce, all_gather");
  refused({"-b", "8X"}, "-b 8X", "64K");
  refused({"-e", "99999999999999999999"}, "-e 99999999999999999999", "64K");
  refused({"-b", "16", "-e", "8"}, "-b 16", "-e 8");
  for (const char* factor : {"1", "-2", "nan", "inf", "abc", "2x"}) refused({"-f", factor}, factor, "larger than 1");
  for (const char* count : {"0", "-1", "1.5", "99999999999", "many"}) refused({"-n", count}, count, "1 or more");
  refused({"-w", "-1"}, "-w -1", "0 or more");
  refused({"-c", "yes"}, "-c yes", "0 or more");
  refused({"-d", "float8"}, "-d float8", "bfloat16");
  refused({"-o", "mean"}, "-o mean", "avg");
  refused({"-t", "0"}, "-t 0", "1 or more");
  refused({"-t", "100000"}, "-t 100000", "at most 1024");
  refused({"-t", "2", "-r", "2"}, "-r 2", "0 to 1");
  refused({"-i", "0"}, "-i 0", "at least 1");
  refused({"-J", "/no/such/folder/x.json"}, "/no/such/folder/x.json", "another");
}

class EveryCollective : public testing::TestWithParam<const char*> {};

TEST_P(EveryCollective, IsMeasuredAndCheckedAndWrittenAsJson) {
  const std::string path = testing::TempDir() + "falcon-perf-" + std::to_string(getpid()) + ".json";
  const Outcome outcome = perf({GetParam(), "-t", "3", "-b", "24", "-e", "1536", "-f", "8", "-n", "2", "-w", "1", "-d",
                                "all", "-o", "all", "-J", path});
  EXPECT_EQ(outcome.exitCode, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("Out of bounds values : 0 OK"));
  const auto written = nlohmann::json::parse(std::ifstream(path));
  std::remove(path.c_str());
  EXPECT_EQ(written["collective"], GetParam());
  EXPECT_EQ(written["ranks"], 3);
  const size_t ops = findCollective(GetParam())->reduces ? 5 : 1;
  EXPECT_EQ(written["results"].size(), 3 * 10 * ops);  // sizes, types
  for (const auto& line : written["results"]) {
    for (const char* place : {"out_of_place", "in_place"}) {
      EXPECT_EQ(line[place]["nwrong"], "0") << line;
      EXPECT_GT(line[place]["time"].get<double>(), 0) << line;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Names, EveryCollective,
                         testing::Values("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
                                         "alltoall", "gather", "scatter", "sendrecv"));

TEST(PerfCommand, SizesGrowByAFactorOrAStep) {
  const auto sizes = [](const std::vector<std::string>& words) {
    std::vector<std::string> all = {"-t", "1", "-n", "1", "-w", "0", "-c", "0"};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<std::string> first;
    std::istringstream lines(perf(all).output);
    for (std::string line, word; std::getline(lines, line);)
      if (std::istringstream(line) >> word && word != "#") first.push_back(word);
    return first;
  };
  EXPECT_THAT(sizes({"-b", "8", "-e", "64", "-f", "2"}), testing::ElementsAre("8", "16", "32", "64"));
  EXPECT_THAT(sizes({"-b", "1K", "-e", "3K", "-i", "1K"}), testing::ElementsAre("1024", "2048", "3072"));
  EXPECT_THAT(sizes({"-b", "8", "-e", "8"}), testing::ElementsAre("8"));
}

}  // namespace
}  // namespace falcon::perf
