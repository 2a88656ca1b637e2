#include "preload/making.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/base/environment.h"

namespace falcon::preload {
namespace {

std::shared_future<void> done() {
  std::promise<void> promise;
  promise.set_value();
  return promise.get_future().share();
}

// Where there is no thread for it, say: it never begins.
TEST(Making, AStepThatIsDroppedLetsNobodyPastThoseBeforeIt) {
  const auto communicator = std::make_shared<WatchedCommunicator>(0, 2, 0, done());
  std::promise<void> first;
  WatchedCommunicator::Step running(communicator, first.get_future().share());
  running.awaitTurn();
  { const WatchedCommunicator::Step dropped(communicator, done()); }
  WatchedCommunicator::Step next(communicator, done());
  bool firstIsDone = false;
  std::thread ends([&] {
    std::this_thread::sleep_for(20ms);
    firstIsDone = true;
    first.set_value();
  });
  next.awaitTurn();
  EXPECT_TRUE(firstIsDone);
  ends.join();
}

TEST(Making, StepsAndShrinksAreCountedApart) {
  WatchedCommunicator communicator(0, 4, 0, done());
  EXPECT_EQ(communicator.nextStep(), 0u);
  EXPECT_EQ(communicator.nextShrink({1}), 0u);
  EXPECT_EQ(communicator.nextShrink({1, 2}), 0u);
  EXPECT_EQ(communicator.nextShrink({1}), 1u);
  EXPECT_EQ(communicator.nextStep(), 1u);
}

}  // namespace
}  // namespace falcon::preload
