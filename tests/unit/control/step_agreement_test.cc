#include "control/step_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <memory>
#include <thread>

namespace falcon::control {
namespace {

/// Where threads that are ranks gather.
class Meeting {
 public:
  explicit Meeting(int size) : size_(size), texts_(static_cast<std::size_t>(size)), barrier_(size) {}

  std::vector<std::string> gather(int rank, std::string_view mine) {
    texts_[static_cast<std::size_t>(rank)] = mine;
    barrier_.arrive_and_wait();
    auto all = texts_;
    barrier_.arrive_and_wait();
    return all;
  }
  int size() const { return size_; }

 private:
  const int size_;
  std::vector<std::string> texts_;
  std::barrier<> barrier_;
};

constexpr unsigned steps = 4;

/// What one rank comes to that lacks the steps whose bits are set: the steps that it shares with all others.
unsigned sharedSteps(Meeting& meeting, int rank, unsigned lacking) {
  const Gather gather = [&](std::string_view mine) -> Result<std::vector<std::string>> {
    return meeting.gather(rank, mine);
  };
  unsigned shared = 0;
  for (unsigned step = 0; step < steps; ++step) {
    if (lacking >> step & 1) continue;
    const Status agreed = agreeOnStep(step, gather);
    if (!agreed) {
      EXPECT_EQ(agreed.error().code(), ErrorCode::system);
      continue;
    }
    const std::string mine = std::to_string(step);
    for (const std::string& theirs : meeting.gather(rank, mine)) EXPECT_EQ(theirs, mine) << "ranks are at one step";
    shared |= 1U << step;
  }
  return shared;
}

// Whatever any rank lacks; the last step all have, since who lacks a step is awaited until its next one.
TEST(StepAgreement, AStepThatOneRankLacksIsMissedByAllAndNoOtherIs) {
  constexpr unsigned ways = 1U << (steps - 1);
  for (unsigned first = 0; first < ways; ++first)
    for (unsigned second = 0; second < ways; ++second) {
      const unsigned lacking[] = {first, second, second & ~first};
      Meeting meeting(3);
      unsigned shared[3] = {};
      {
        std::vector<std::jthread> ranks;
        for (int rank = 0; rank < meeting.size(); ++rank)
          ranks.emplace_back([&, rank] { shared[rank] = sharedSteps(meeting, rank, lacking[rank]); });
      }
      for (const unsigned each : shared)
        ASSERT_EQ(each, ((1U << steps) - 1) & ~(first | second)) << first << " and " << second;
    }
}

TEST(StepAgreement, SaysWhoLacksIt) {
  const auto others = [](std::string_view mine) -> Result<std::vector<std::string>> {
    std::string past(mine);
    ++past[0];
    return std::vector<std::string>{std::string(mine), past, std::string(mine), past};
  };
  EXPECT_THAT(agreeOnStep(3, others).error().message(), testing::EndsWith("on ranks 1, 3"));
  const auto nonsense = [](std::string_view) -> Result<std::vector<std::string>> {
    return std::vector<std::string>{"4"};
  };
  EXPECT_EQ(agreeOnStep(3, nonsense).error().code(), ErrorCode::remote);
}

}  // namespace
}  // namespace falcon::control
