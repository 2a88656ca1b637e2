#include "instrument/period_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "instrument/occasional_step.h"
#include "unit/instrument/call_script.h"

namespace falcon::instrument {
namespace {

/// All samples are iterations of `calls` calls that took `duration`, and none is provisional.
void expectSteady(const std::vector<IterationSample>& samples, size_t count, std::uint64_t calls,
                  Nanoseconds duration) {
  EXPECT_EQ(samples.size(), count);
  for (const IterationSample& sample : samples) {
    std::uint64_t total = 0;
    for (const auto& share : sample.communicators) total += share.calls;
    EXPECT_EQ(total, calls) << sample.index;
    EXPECT_EQ(sample.duration.count(), duration.count()) << sample.index;
    EXPECT_EQ((sample.inLibrary + sample.outside).count(), sample.duration.count());
    EXPECT_FALSE(sample.provisional) << sample.index;
    EXPECT_FALSE(sample.extraCalls) << sample.index;
  }
}

PeriodOptions quick() {
  return {.pattern = {}, .settleTime = 0s};
}

class PeriodLengths : public testing::TestWithParam<int> {};

TEST_P(PeriodLengths, OfDistinctCallsAreFoundAfterThreeRepeatsAndALittle) {
  const int length = GetParam();
  CallScript script(quick());
  script.play("PQRSTUV");  // the job's start repeats nothing
  const auto iteration = [&] {
    for (int i = 0; i < length; ++i) {
      CallRecord record = call('A');
      record.count = static_cast<std::uint64_t>(i);
      script.play(record);
    }
  };
  for (int i = 0; i < 5; ++i) iteration();
  script.take();
  for (int i = 0; i < 4; ++i) iteration();
  expectSteady(script.take(), 4, static_cast<std::uint64_t>(length), length * 2ms);
  EXPECT_EQ(script.finder().period(), static_cast<size_t>(length));
}
INSTANTIATE_TEST_SUITE_P(Sizes, PeriodLengths, testing::Values(1, 2, 3, 5, 17, 64, 500, 3000, 8000, 20000));

/// Eight micro-batches of sequences of that length, and gradients that are as many whatever they are.
void trainOn(CallScript& script, std::uint64_t length) {
  for (int i = 0; i < 8; ++i)
    for (const char name : {'s', 'r'}) {
      CallRecord record = call(name, 2);
      record.count = length;
      script.play(record, 1ms, std::chrono::milliseconds(length / 100));
    }
  script.play("GL");
}

TEST(Period, OfSequencesOfOtherLengthsIsFoundWithoutTheirSizesWhichAreTheWork) {
  CallScript script(quick());
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) trainOn(script, 1000 + random() % 1000);
  script.take();
  std::vector<std::uint64_t> lengths;
  for (int i = 0; i < 20; ++i) trainOn(script, lengths.emplace_back(1000 + random() % 1000));
  const auto samples = script.take();
  ASSERT_EQ(samples.size(), 20u);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_FALSE(samples[i].provisional) << i;
    EXPECT_FALSE(samples[i].extraCalls) << i;
    EXPECT_EQ(samples[i].work, 16.0 * static_cast<double>(lengths[i] * sizeOf(call('s').type))) << i;
  }
}

TEST(Period, OfEqualSequencesShowsNoWork) {
  CallScript script(quick());
  for (int i = 0; i < 200; ++i) trainOn(script, 1000);
  for (const IterationSample& sample : script.take()) EXPECT_EQ(sample.work, 0);
}

TEST(Period, OfALoopAndAMarkerIsNotTheLoop) {
  CallScript script;
  const auto iteration = [&] { script.play("AB", 64), script.play("M"); };
  for (int i = 0; i < 14; ++i) iteration();
  script.take();
  for (int i = 0; i < 20; ++i) iteration();
  expectSteady(script.take(), 20, 129, 258ms);
}

TEST(Period, OfALoopAloneIsProvisionalWhileItIsYoung) {
  CallScript script;  // an iteration's inner loop, 1 s long
  script.play("AB", 250);
  for (const IterationSample& sample : script.take()) EXPECT_TRUE(sample.provisional);
}

TEST(Period, OfNestedMicroBatchLoopsIsTheOuterOne) {
  CallScript script;
  const auto iteration = [&] {
    for (int microBatch = 0; microBatch < 8; ++microBatch) script.play("T", 4), script.play("sr");
    script.play("GHIL");
  };
  for (int i = 0; i < 30; ++i) iteration();
  script.take();
  for (int i = 0; i < 20; ++i) iteration();
  expectSteady(script.take(), 20, 52, 104ms);
}

TEST(Period, OfOneForwardOneBackwardIsFoundOnTheGradientCommunicator) {
  CallScript script;
  const auto iteration = [&] {
    script.play("s", 3, 2);
    for (int i = 0; i < 13; ++i) script.play("sr", 1, 2), script.play("TT", 1, 3);
    script.play("r", 3, 2);
    script.play("GH", 1, 4);
  };
  script.play("WWWW", 1, 9);
  for (int i = 0; i < 40; ++i) iteration();
  script.take();
  for (int i = 0; i < 10; ++i) iteration();
  const auto samples = script.take();
  expectSteady(samples, 10, 60, 120ms);
  ASSERT_FALSE(samples.empty());
  ASSERT_EQ(samples.back().communicators.size(), 3u);
  EXPECT_EQ(samples.back().communicators[0].id, 2u);
  EXPECT_EQ(samples.back().communicators[0].calls, 32u);
  EXPECT_EQ(samples.back().communicators[0].inLibrary.count(), Nanoseconds(32ms).count());
  EXPECT_EQ(samples.back().outside.count(), Nanoseconds(60ms).count());
}

TEST(Period, SurvivesThreadsThatInterleaveTwoCommunicatorsAtRandom) {
  std::mt19937 random(7);
  CallScript script;
  const auto iteration = [&] {
    const char* first = "ABCABCX";
    const char* second = "DEDEDEDEDEY";
    while (*first || *second) {
      const bool takeFirst = *first && (!*second || random() % 2);
      if (takeFirst)
        script.play(call(*first++, 1));
      else
        script.play(call(*second++, 2));
    }
    script.play("Z", 1, 1);  // where the threads join
  };
  for (int i = 0; i < 90; ++i) iteration();
  script.take();
  for (int i = 0; i < 50; ++i) iteration();
  expectSteady(script.take(), 50, 19, 38ms);
}

TEST(Period, IsNotTwoIterationsWhereTwoThreadsHappenToTakeTurns) {
  CallScript script;
  // A pipeline's sends, gradients from a thread of their own, and where they join. Their order goes to and fro.
  const auto iteration = [&](bool gradientsEarly) {
    script.play("aaaa", 1, 1);
    if (gradientsEarly) script.play("G", 1, 2);
    script.play("a", 1, 1);
    if (!gradientsEarly) script.play("G", 1, 2);
    script.play("H", 1, 2);
    script.play("Z", 1, 3);
    script.wait(200ms);
  };
  for (const bool early : {true, true, false, true, true, true, false, false, true, true, false, true})
    iteration(early);
  script.take();
  for (int i = 0; i < 24; ++i) iteration(i % 2 == 0);
  const auto samples = script.take();
  EXPECT_EQ(samples.size(), 24u);
  for (const auto& sample : samples) EXPECT_LT(sample.duration, 300ms) << sample.index;
  EXPECT_EQ(script.finder().period(), 8u);
}

TEST(Period, OfTwoCommunicatorsThatTakeTurnsIsBothTurns) {
  CallScript script;
  // On either communicator every iteration looks like the one before it, but not how many calls it has there.
  for (int i = 0; i < 60; ++i) {
    script.play("Z", 1, 1);
    script.play("YY", 1, i % 2 == 0 ? 2 : 3);
    script.wait(200ms);
  }
  EXPECT_EQ(script.finder().period(), 6u);
}

TEST(Period, ToleratesAnEvaluationEveryHundredIterationsForEver) {
  CallScript script;
  for (int i = 0; i < 1200; ++i) {
    script.play("AABC");
    script.wait(800ms);
    if (i % 100 == 99) script.play("E", 30);
  }
  std::uint64_t pattern = 0;
  int extras = 0, judged = 0;
  const auto samples = script.take();
  for (const IterationSample& sample : samples) {
    if (sample.provisional) continue;
    if (pattern == 0) pattern = sample.pattern;
    EXPECT_EQ(sample.pattern, pattern) << sample.index;
    ++judged;
    extras += sample.extraCalls;
    if (!sample.extraCalls) {
      EXPECT_EQ(sample.duration.count(), Nanoseconds(808ms).count());
    }
  }
  EXPECT_GT(judged, 1100);
  EXPECT_EQ(extras, 11);
  EXPECT_EQ(script.finder().period(), 4u);
}

TEST(Period, ToleratesIrregularExtraCallsFromTheStart) {
  std::mt19937 random(2);
  CallScript script;
  for (int i = 0; i < 800; ++i) {
    script.play("AABC");
    script.wait(100ms);
    if (random() % 20 == 0) script.play("E", 1 + static_cast<int>(random() % 9));
  }
  const auto samples = script.take();
  ASSERT_GT(samples.size(), 790u);
  for (size_t i = 500; i < samples.size(); ++i) {
    EXPECT_FALSE(samples[i].provisional) << i;
    if (!samples[i].extraCalls) {
      EXPECT_EQ(samples[i].duration.count(), Nanoseconds(108ms).count());
    }
  }
}

TEST(Period, IsOfOneIterationWithAnEvaluationEveryTen) {
  CallScript script;
  const auto round = [&] { script.play("AABC", 10), script.play("E"); };
  for (int i = 0; i < 60; ++i) round();
  script.take();
  for (int i = 0; i < 10; ++i) round();
  const auto samples = script.take();
  ASSERT_EQ(samples.size(), 100u);
  EXPECT_EQ(std::count_if(samples.begin(), samples.end(), [](const auto& each) { return each.extraCalls; }), 10);
  for (const IterationSample& sample : samples) {
    EXPECT_FALSE(sample.provisional);
    EXPECT_EQ(sample.duration.count(), Nanoseconds(sample.extraCalls ? 10ms : 8ms).count());
  }
  EXPECT_EQ(script.finder().period(), 4u);
}

TEST(Period, OfMicroBatchesAndALargeSumAtTheirEndIsTheLongOneWhateverTheirNumber) {
  for (const int microBatches : {2, 4, 5, 8, 10, 16, 20, 50, 64, 100}) {
    CallScript script;
    CallRecord gradients = call('G');
    gradients.count = 50'000;
    const auto iteration = [&] { script.play("TTU", microBatches), script.play(gradients); };
    for (int i = 0; i < 40; ++i) iteration();
    script.take();
    script.wait(2s);
    for (int i = 0; i < 10; ++i) iteration();
    EXPECT_EQ(script.take().size(), 10u) << microBatches;
    EXPECT_EQ(script.finder().period(), static_cast<size_t>(3 * microBatches + 1));
  }
}

TEST(OccasionalStep, IsWhatComesAfterARoundNumberOfIterationsAndCarriesLittle) {
  const NestedPattern log{.repeats = 10,
                          .innerBytes = 1e6,
                          .onceBytes = 12,
                          .innerKinds = 4,
                          .innerHasCollective = true,
                          .innerTime = 500ms};
  EXPECT_TRUE(isOccasionalStep(log));
  const auto with = [&](auto change) {
    NestedPattern other = log;
    change(other);
    return isOccasionalStep(other);
  };
  EXPECT_TRUE(with([](NestedPattern& p) { p.repeats = 500; }));
  EXPECT_TRUE(with([](NestedPattern& p) { p.innerKinds = 1; }));                      // one bucket of gradients
  EXPECT_FALSE(with([](NestedPattern& p) { p.innerKinds = 1, p.innerTime = 2ms; }));  // layers
  EXPECT_FALSE(with([](NestedPattern& p) { p.repeats = 64; }));                       // micro-batches
  EXPECT_FALSE(with([](NestedPattern& p) { p.repeats = 5; }));
  EXPECT_FALSE(with([](NestedPattern& p) { p.onceBytes = 2e6; }));             // gradients
  EXPECT_FALSE(with([](NestedPattern& p) { p.innerHasCollective = false; }));  // a pipeline
}

TEST(Period, FollowsASplitThatWasAnnounced) {
  CallScript script(quick());
  const auto iteration = [&](int microBatches) { script.play("sr", microBatches), script.play("GH"); };
  for (int i = 0; i < 20; ++i) iteration(8);
  const auto before = script.take().back().pattern;
  script.finder().rebase();
  for (int i = 0; i < 4; ++i) iteration(5);
  const auto changing = script.take();
  EXPECT_GE(changing.size(), 3u);  // the anchor is still there
  EXPECT_TRUE(changing[1].provisional);
  for (int i = 0; i < 10; ++i) iteration(5);
  const auto samples = script.take();
  expectSteady(samples, 10, 12, 24ms);
  ASSERT_FALSE(samples.empty());
  EXPECT_EQ(samples.back().pattern, before);
}

TEST(Period, FollowsASplitThatNobodyAnnouncedAsAnotherPattern) {
  CallScript script(quick());
  const auto iteration = [&](int microBatches) { script.play("sr", microBatches), script.play("GH"); };
  for (int i = 0; i < 20; ++i) iteration(8);
  const auto before = script.take().back().pattern;
  for (int i = 0; i < 4; ++i) iteration(5);
  for (const IterationSample& sample : script.take()) EXPECT_TRUE(sample.extraCalls || sample.pattern != before);
  for (int i = 0; i < 10; ++i) iteration(5);
  const auto samples = script.take();
  expectSteady(samples, 10, 12, 24ms);
  ASSERT_FALSE(samples.empty());
  EXPECT_NE(samples.back().pattern, before);
}

TEST(Period, IsFoundAgainWhenAllCallsChange) {
  CallScript script(quick());
  script.play("ABC", 100);
  script.play("UVWXYZ", 60);
  script.take();
  script.play("UVWXYZ", 10);
  expectSteady(script.take(), 10, 6, 12ms);
}

TEST(Period, IsKeptOverAnOverrunButTheIterationIsNotJudged) {
  CallScript script(quick());
  for (int i = 0; i < 20; ++i) script.play("ABBC");
  script.take();
  script.play("AB");
  script.take();
  script.finder().overrun(3);
  script.play("BC");
  EXPECT_TRUE(script.take().empty());
  EXPECT_EQ(script.finder().lostCalls(), 3u);
  script.play("ABBC", 5);
  const auto samples = script.take();
  EXPECT_GE(samples.size(), 4u);
  for (const IterationSample& sample : samples) EXPECT_EQ(sample.duration.count(), Nanoseconds(8ms).count());
}

TEST(Period, GoesOnWhileCommunicatorsComeAndGo) {
  CallScript script;
  for (CommunicatorId id = 0; id < 2000; ++id) {
    script.play("AAB", 1, 1);
    script.play("XYX", 1, 100 + id);  // a communicator of its own for every iteration
    script.wait(100ms);
  }
  script.take();
  for (CommunicatorId id = 0; id < 10; ++id) {
    script.play("AAB", 1, 1);
    script.play("XYX", 1, 5000 + id);
    script.wait(100ms);
  }
  expectSteady(script.take(), 10, 6, 112ms);

  // The iterations' own communicator goes too, and another takes its place.
  for (int i = 0; i < 500; ++i) script.play("CCD", 1, 9000), script.wait(100ms);
  script.take();
  for (int i = 0; i < 10; ++i) script.play("CCD", 1, 9000), script.wait(100ms);
  expectSteady(script.take(), 10, 3, 106ms);
}

TEST(Period, OutlastsAPauseOfTheWholeProcess) {
  CallScript script(quick());
  const auto iteration = [&] { script.play("AB", 1, 1), script.play("XY", 1, 2), script.wait(17ms); };
  for (int i = 0; i < 60; ++i) iteration();
  const auto before = script.take();
  script.wait(3s);  // longer than twenty iterations, at the start of one: the other communicator ends its turn first
  for (int i = 0; i < 60; ++i) iteration();
  const auto after = script.take();
  ASSERT_EQ(after.size(), 60u);
  EXPECT_EQ(after[0].duration.count(), Nanoseconds(3025ms).count());
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i].pattern, before.back().pattern) << i;
    EXPECT_TRUE(i == 0 || after[i].duration == 25ms) << i;
  }

  // But one that is gone is not waited for, however far apart the calls of the others are.
  for (int i = 0; i < 60; ++i) script.play("AB", 1, 1), script.wait(500ms);
  EXPECT_EQ(script.finder().period(), 2u);
}

TEST(Period, OfOneCallAnIterationIsOne) {
  CallScript script;
  for (int i = 0; i < 30; ++i) script.play("G"), script.wait(98ms);
  script.take();
  for (int i = 0; i < 10; ++i) script.play("G"), script.wait(98ms);
  expectSteady(script.take(), 10, 1, 100ms);
  EXPECT_EQ(script.finder().period(), 1u);
}

TEST(Period, IsKnownWhenTheThirdIterationEnds) {
  for (const int length : {1, 7, 50, 333, 2000, 20'000}) {
    CallScript script;
    for (int i = 0; i < 3 * length; ++i) {
      CallRecord record = call('A');
      record.count = static_cast<std::uint64_t>(i % length);
      script.play(record);
    }
    EXPECT_EQ(script.finder().period(), static_cast<size_t>(length));
  }
}

TEST(Period, OverAnOverrunAndAnEvaluationWithTheSameCallsStaysThePattern) {
  // Every call occurs twice an iteration: which of the two one sees says nothing.
  CallScript script;
  const auto iteration = [&] { script.play("ABBACC"), script.wait(100ms); };
  for (int i = 0; i < 30; ++i) iteration();
  const auto pattern = script.take().back().pattern;
  script.play("ABB");
  script.finder().overrun(3);
  for (int i = 0; i < 30; ++i) iteration();
  script.play("A");  // shifts what is between the calls
  for (int i = 0; i < 30; ++i) iteration();
  const auto samples = script.take();
  EXPECT_GE(samples.size(), 50u);
  for (const IterationSample& sample : samples) EXPECT_EQ(sample.pattern, pattern);
  EXPECT_EQ(script.finder().period(), 6u);
}

// As many equal calls in each iteration, and a call that never comes again: the equal ones are not iterations of a
// microsecond.
TEST(Period, OfSomeEqualCallsAmongOthersThatNeverRepeatStaysProvisional) {
  CallScript script;
  for (std::uint64_t iteration = 0; iteration < 1000; ++iteration) {
    for (int i = 0; i < 20; ++i) script.play(call('A'), 1us, 0us);
    CallRecord other = call('B');
    other.count = 100'000 + iteration;
    script.play(other, 5ms, 15ms);
  }
  for (const IterationSample& sample : script.take()) ASSERT_TRUE(sample.provisional) << sample.index;
}

TEST(Period, IsNotFoundWhereNothingRepeats) {
  CallScript script(quick());
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) {
    CallRecord record = call('A');
    record.count = random();
    script.play(record);
  }
  EXPECT_TRUE(script.take().empty());
  EXPECT_EQ(script.finder().period(), 0u);
}

}  // namespace
}  // namespace falcon::instrument
