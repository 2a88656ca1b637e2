#include "instrument/acf_period.h"

#include <gtest/gtest.h>

#include "unit/instrument/call_script.h"

namespace falcon::instrument {
namespace {

std::vector<double> values(std::string_view letters, int times) {
  std::vector<double> all;
  for (int i = 0; i < times; ++i) all.insert(all.end(), letters.begin(), letters.end());
  return all;
}

TEST(FirstCorrelatedLag, IsThePeriodOfWhatRepeats) {
  EXPECT_EQ(firstCorrelatedLag(values("abcz", 20), 64), 4u);
  EXPECT_EQ(firstCorrelatedLag(values("a", 20), 64), 1u);
  EXPECT_EQ(firstCorrelatedLag({}, 64), 0u);
  EXPECT_EQ(firstCorrelatedLag(values("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaz", 20), 32), 0u) << "beyond the lags";
}

// The papers' known mistake, which the finder does not make (Period.OfALoopAndAMarkerIsNotTheLoop).
TEST(FirstCorrelatedLag, OfALoopWithAMarkerIsTheLoop) {
  std::string iteration;
  for (int i = 0; i < 64; ++i) iteration += "ac";
  EXPECT_EQ(firstCorrelatedLag(values(iteration + "b", 8), 256), 2u);
}

TEST(Period, ByCorrelationIsThereForComparison) {
  CallScript script(PeriodOptions{.method = PeriodMethod::acf});
  const auto iteration = [&] {
    for (const Operation operation : {Operation::allGather, Operation::reduceScatter, Operation::allReduce}) {
      CallRecord record = call('A');
      record.operation = operation;
      script.play(record);
    }
    script.wait(94ms);
  };
  for (int i = 0; i < 100; ++i) iteration();
  const auto samples = script.take();
  ASSERT_GT(samples.size(), 50u);
  for (const IterationSample& sample : samples) EXPECT_EQ(sample.duration.count(), Nanoseconds(100ms).count());
  EXPECT_TRUE(samples.front().provisional);
  EXPECT_FALSE(samples.back().provisional);
  EXPECT_EQ(script.finder().period(), 3u);
}

}  // namespace
}  // namespace falcon::instrument
