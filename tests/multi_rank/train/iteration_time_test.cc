// Falcon's iteration times beside the trainer's own stamps.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <thread>

#include "instrument/call_log_view.h"
#include "instrument/period_finder.h"
#include "instrument/range_log.h"
#include "train_job.h"

namespace falcon::train_test {
namespace {

using namespace std::chrono_literals;

struct Errors {
  double singleMedian = 0, worstMeanOfTwenty = 0;  ///< shares of the trainer's time
  int iterations = 0, means = 0;
};

/// Falcon's iterations beside the trainer's that share most time with them, from one start to the next.
Errors compare(const std::vector<LoggedIteration>& trainer, const std::vector<instrument::IterationSample>& samples) {
  constexpr std::size_t averaged = 20;
  struct Pair {
    std::uint64_t sample;
    std::size_t iteration;
    double ours, theirs;
  };
  std::vector<Pair> pairs;
  std::vector<double> singles;
  for (const auto& sample : samples) {
    if (sample.provisional) continue;
    const double middle = seconds(sample.start + sample.duration / 2);
    for (std::size_t i = 0; i + 1 < trainer.size(); ++i) {
      if (middle < trainer[i].start || middle >= trainer[i + 1].start) continue;
      pairs.push_back({sample.index, i, seconds(sample.duration), trainer[i + 1].start - trainer[i].start});
      singles.push_back(std::abs(pairs.back().ours - pairs.back().theirs) / pairs.back().theirs);
    }
  }
  Errors errors;
  errors.iterations = static_cast<int>(singles.size());
  if (singles.size() < averaged) return errors;
  std::nth_element(singles.begin(), singles.begin() + static_cast<std::ptrdiff_t>(singles.size() / 2), singles.end());
  errors.singleMedian = singles[singles.size() / 2];
  for (std::size_t i = 0; i + averaged <= pairs.size(); ++i) {
    const Pair &first = pairs[i], &last = pairs[i + averaged - 1];
    const bool whole = last.sample - first.sample == averaged - 1 && last.iteration - first.iteration == averaged - 1;
    if (!whole) continue;
    double sum = 0, expected = 0;
    for (std::size_t j = i; j < i + averaged; ++j) sum += pairs[j].ours, expected += pairs[j].theirs;
    ++errors.means;
    errors.worstMeanOfTwenty = std::max(errors.worstMeanOfTwenty, std::abs(sum - expected) / expected);
  }
  return errors;
}

/// Iterations that were begun when the period had long been known: it is provisional until it was seen three times and
/// is 2 s old.
std::size_t begunLate(const std::vector<LoggedIteration>& trainer) {
  constexpr double learning = 6;
  return static_cast<std::size_t>(std::count_if(trainer.begin(), trainer.end(), [&](const LoggedIteration& each) {
    return each.iteration > 8 && each.start > trainer.front().end + learning;
  }));
}

struct Shape {
  const char* name;
  int ranks;
  std::vector<std::string> arguments;
};
std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.name;
}

class IterationTime : public testing::TestWithParam<Shape> {};

// The job is killed, as in a crash: its logs stay to be looked at. The bounds allow for a busy machine, where a rank
// may lose its core between a stamp and the call beside it; the usual figures are in docs/iteration-time.md.
TEST_P(IterationTime, IsThatOfTheTrainersStamps) {
  constexpr std::size_t wanted = 60;
  const std::string name = "falcon-train-test-" + std::to_string(getpid());
  const std::filesystem::path folder = instrument::jobFolder(name);
  const ScratchFolder scratch;
  std::vector<std::string> arguments = GetParam().arguments;
  for (const char* more :
       {"--micro-batches", "8", "--micro-batch-size", "2", "--iterations", "100000", "--quiet", "--log"})
    arguments.emplace_back(more);
  arguments.push_back(scratch.file("log"));
  {
    TrainJob job(GetParam().ranks, arguments,
                 {{"NCCL_FALCON", "1"}, {"NCCL_FALCON_JOB", name}, {"NCCL_FALCON_VALIDATE", "off"}});
    const auto deadline = std::chrono::steady_clock::now() + 250s;
    std::size_t seen = 0;
    while (seen < wanted && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(200ms);
      seen = begunLate(readLog(scratch.file("log"), Growth::grows));
    }
    for (int rank = 0; rank < GetParam().ranks; ++rank) job.kill(rank);
    job.wait();
    ASSERT_GE(seen, wanted) << job.errors(0);
  }
  const auto calls = instrument::readCallLog(folder / "rank-0.calls", 1 << 15);
  const auto ranges = instrument::readRangeLog(folder / "rank-0.ranges", 0);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(calls) << calls.error().message();
  ASSERT_TRUE(ranges) << ranges.error().message();
  std::vector<std::string> names;
  for (const auto& range : ranges->names) names.push_back(range.text);
  for (const char* expected : {"data", "forward", "backward", "optimiser"})
    EXPECT_NE(std::find(names.begin(), names.end(), expected), names.end()) << expected;

  instrument::PeriodFinder finder;
  std::vector<instrument::IterationSample> samples;
  for (const CallRecord& call : calls->latest)
    for (auto& sample : finder.add(call)) samples.push_back(std::move(sample));
  const Errors errors = compare(readLog(scratch.file("log"), Growth::grows), samples);
  std::cout << "iteration time, " << GetParam().name << ": " << errors.iterations << " iterations of "
            << finder.period() << " calls; error of single ones " << 100 * errors.singleMedian
            << " % at the median, of means over 20 " << 100 * errors.worstMeanOfTwenty << " % at most\n";
  EXPECT_GE(errors.iterations, 40) << "few iterations, or not the trainer's";
  EXPECT_GE(errors.means, 10) << "Falcon's iterations are not the trainer's";
  EXPECT_LT(errors.singleMedian, 0.01);
  EXPECT_LT(errors.worstMeanOfTwenty, 0.03);
}

INSTANTIATE_TEST_SUITE_P(Shapes, IterationTime,
                         testing::Values(Shape{"two replicas", 2, {"--dp", "2"}},
                                         Shape{"data parallel", 4, {"--dp", "4"}},
                                         Shape{"data and pipeline parallel", 4, {"--dp", "2", "--pp", "2"}},
                                         Shape{"pipeline and tensor parallel", 4, {"--pp", "2", "--tp", "2"}}),
                         [](const auto& shape) {
                           std::string name = shape.param.name;
                           std::erase(name, ' ');
                           return name;
                         });

}  // namespace
}  // namespace falcon::train_test
