// What a process has asked of a controller that may change before it answers.
#include "control/suspend_requests.h"

#include <gtest/gtest.h>

namespace falcon::control::test {
namespace {

std::uint64_t openSuspension(SuspendRequests& requests) {
  return requests.open([](std::uint64_t number) { return AskSuspend{number, 60}; });
}

std::uint32_t attemptOf(const SuspendRequests& requests, std::uint64_t number) {
  const auto message = requests.message(number);
  return message ? std::get<AskSuspend>(*message).attempt : 0;
}

TEST(SuspendRequests, OnlyWhatHasNoAnswerIsSentAgain) {
  SuspendRequests requests;
  const std::uint64_t first = openSuspension(requests);
  const std::uint64_t second = openSuspension(requests);
  requests.answer({first, SuspendOutcome::done, ""});
  EXPECT_EQ(requests.again(), std::vector<std::uint64_t>{second});
  EXPECT_EQ(requests.message(first), std::nullopt);
  EXPECT_EQ(attemptOf(requests, second), 1U);
  EXPECT_TRUE(requests.wait(first));
}

TEST(SuspendRequests, ARefusalOfTheControllerBeforeDoesNotEndWhatItsSuccessorCarriesOut) {
  SuspendRequests requests;
  const std::uint64_t number = openSuspension(requests);
  requests.again();
  requests.answer({number, SuspendOutcome::givenUp, "the controller has changed"});
  ASSERT_NE(requests.message(number), std::nullopt) << "it still waits";
  requests.answer({number, SuspendOutcome::done, "", 1});
  EXPECT_TRUE(requests.wait(number));
}

TEST(SuspendRequests, ARefusalBeforeItIsSentAgainCounts) {
  SuspendRequests requests;
  const std::uint64_t number = openSuspension(requests);
  requests.answer({number, SuspendOutcome::givenUp, "the controller has changed"});
  EXPECT_TRUE(requests.again().empty());
  EXPECT_FALSE(requests.wait(number));
}

// Whoever lets the job go has let it go.
TEST(SuspendRequests, ToResumeAnyControllersAnswerCounts) {
  SuspendRequests requests;
  const std::uint64_t number = requests.open([](std::uint64_t request) { return AskResume{request}; });
  EXPECT_EQ(requests.again().size(), 1U);
  requests.answer({number, SuspendOutcome::done, ""});
  EXPECT_TRUE(requests.wait(number));
}

}  // namespace
}  // namespace falcon::control::test
