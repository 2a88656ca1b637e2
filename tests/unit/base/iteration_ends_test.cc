// When an iteration has ended, and what its callback is told.
#include "base/iteration_ends.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

namespace falcon {
namespace {

/// As ncclFalconIterationEnd_t.
struct ToldEnd {
  std::size_t size;
  std::uint64_t iteration, next;
  double seconds;
  unsigned int changed;
  int microBatches, firstMicroBatch;
  double gradientWeight;
  std::uint64_t planVersion;
};
using Ends = IterationEnds<ToldEnd>;

void countEnd(const ToldEnd*, void* context) {
  ++*static_cast<int*>(context);
}

IterationBegun begunAt(std::uint64_t iteration) {
  return {iteration, steadyNanoseconds(), 0, 4, 8, 0.25, 1};
}

/// The end that the beginning makes, as whoever calls sees to it.
std::optional<ToldEnd> beginNext(Ends& ends, const IterationBegun& next) {
  const auto due = ends.begin(next, ends.endedBy(next.iteration));
  if (!due.callback) return std::nullopt;
  due.callback(&due.end, due.context);
  ends.told();
  return due.end;
}

TEST(IterationEnds, AreToldOnceEachFromTheSecondBeginningOn) {
  Ends ends{};
  int told = 0;
  EXPECT_FALSE(beginNext(ends, begunAt(4)));
  ends.tell(countEnd, &told, 0);
  EXPECT_FALSE(beginNext(ends, begunAt(4))) << "begun again: it has not ended";
  const auto end = beginNext(ends, begunAt(5));
  ASSERT_TRUE(end);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(end->size, sizeof(ToldEnd));
  EXPECT_EQ(end->iteration, 4u);
  EXPECT_EQ(end->next, 5u);
  EXPECT_EQ(end->changed, 0u);
  EXPECT_EQ(end->microBatches, 4);
  EXPECT_EQ(end->firstMicroBatch, 8);
  EXPECT_EQ(end->gradientWeight, 0.25);
  EXPECT_EQ(beginNext(ends, begunAt(2))->iteration, 5u) << "a program that went back to its checkpoint";
  ends.tell(nullptr, nullptr, 0);
  EXPECT_FALSE(beginNext(ends, begunAt(3)));
  EXPECT_EQ(told, 2);
}

TEST(IterationEnds, SayWhatIsAnotherNow) {
  Ends ends{};
  int told = 0;
  ends.tell(countEnd, &told, 0);
  IterationBegun next = begunAt(0);
  beginNext(ends, next);
  const auto changedBy = [&](auto change) {
    ++next.iteration;
    change();
    return beginNext(ends, next)->changed;
  };
  EXPECT_EQ(changedBy([&] { next.planVersion = 7; }), changedPlan);
  EXPECT_EQ(changedBy([&] { next.microBatches = 5; }), changedMicroBatches);
  EXPECT_EQ(changedBy([&] { next.firstMicroBatch = 9; }), changedMicroBatches);
  EXPECT_EQ(changedBy([&] { next.gradientWeight = 0.3; }), changedMicroBatches);
  EXPECT_EQ(changedBy([&] { next.role = 2; }), changedRole);
  EXPECT_EQ(changedBy([&] { next.role = 1, next.planVersion = 8; }), changedRole | changedPlan);
  EXPECT_EQ(changedBy([] {}), 0u);
}

// From when the plan was given to when the next one is asked for: what the library and the callback take is no part.
TEST(IterationEnds, MeasureWhatTheProgramTakes) {
  Ends ends{};
  int told = 0;
  ends.tell(countEnd, &told, 0);
  beginNext(ends, begunAt(0));
  ends.beganAt -= 2'000'000'000;
  IterationBegun next = begunAt(1);
  const auto due = ends.begin(next, ends.endedBy(1));
  EXPECT_NEAR(due.end.seconds, 2, 0.5);
  ends.beganAt -= 3'000'000'000;  // that the callback takes
  ends.told();
  EXPECT_LT(beginNext(ends, begunAt(2))->seconds, 0.5);
}

TEST(IterationEnds, AreNotToldInsideOfOne) {
  Ends ends{};
  int told = 0;
  ends.tell(countEnd, &told, 0);
  beginNext(ends, begunAt(0));
  ASSERT_TRUE(ends.begin(begunAt(1), ends.endedBy(1)).callback);
  EXPECT_FALSE(ends.endedBy(2).isThere);
  EXPECT_FALSE(ends.begin(begunAt(2), ends.endedBy(2)).callback);
  ends.told();
  EXPECT_EQ(beginNext(ends, begunAt(3))->iteration, 2u);
}

TEST(IterationEnds, GoByWhatIsRegisteredWhenThePlanIsKnown) {
  Ends ends{};
  int first = 0, second = 0;
  ends.tell(countEnd, &first, 1);
  beginNext(ends, begunAt(0));
  auto ended = ends.endedBy(1);
  EXPECT_EQ(ended.flags, 1u);
  ends.tell(countEnd, &second, 0);  // by another thread, while this one waits for its plan
  const auto due = ends.begin(begunAt(1), ended);
  EXPECT_EQ(due.context, &second);
  ends.told();
  ended = ends.endedBy(2);
  ends.tell(nullptr, nullptr, 0);
  EXPECT_FALSE(ends.begin(begunAt(2), ended).callback);
  ended = ends.endedBy(3);
  ends.tell(countEnd, &second, 0);
  EXPECT_FALSE(ends.begin(begunAt(3), ended).callback) << "what was wanted at that end is not known";
}

}  // namespace
}  // namespace falcon
