#include "preload/making.h"
#include "bootstrap/make_unique_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "unit/base/environment.h"

namespace falcon::preload {
namespace {

// The process that made the id holds the rendezvous: it would do so for minutes, once for each communicator.
TEST(Making, TheRendezvousOfWhatIsGivenUpIsOver) {
  const std::string name = "unit-making-" + std::to_string(getpid());
  const Variable on("NCCL_FALCON", "1"), job("NCCL_FALCON_JOB", name.c_str());
  const auto reactor = *transport::processReactor();
  const auto id = bootstrap::makeOwnUniqueId();
  ASSERT_TRUE(id);
  EXPECT_FALSE(joinById(*id, 0, 2)([] { return true; }));
  const auto late = bootstrap::join(reactor, *id, 1, 2, 60s);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message(), testing::HasSubstr("was hung up on by the rendezvous"));
}

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
