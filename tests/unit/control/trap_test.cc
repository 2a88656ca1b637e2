#include "control/trap.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "harness/no_memory.h"

namespace falcon::control {
namespace {

/// A thread that calls the library again and again, as the training does.
class Caller {
 public:
  Caller(Trap& trap, const Clock& clock)
      : thread_([this, &trap, &clock] {
          while (!stop_) {
            trap.pass();
            ++calls_;
            trap.noteCall(clock.now());
            trap.pass();
          }
        }) {}
  ~Caller() {
    stop_ = true;
    thread_.join();
  }
  long calls() const { return calls_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<long> calls_{0};
  std::thread thread_;
};

void waitUntil(const std::function<bool()>& condition) {
  for (int i = 0; i < 60'000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_TRUE(condition());
}

TEST(Trap, HoldsEveryThreadAndLetsThemGo) {
  SystemClock clock;
  Trap trap(clock);
  Caller one(trap, clock), two(trap, clock);
  waitUntil([&] { return one.calls() > 10 && two.calls() > 10; });
  trap.close(60s);
  waitUntil([&] { return trap.holdsAll(1h); });  // nobody who was only slow counts as held
  const long before = one.calls() + two.calls();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(one.calls() + two.calls(), before);
  trap.open();
  waitUntil([&] { return one.calls() + two.calls() > before + 10; });
  EXPECT_GT(trap.totalClosed(), 20ms);
}

// The calls of the job go on; what is not known is not said.
TEST(Trap, WithoutMemoryForAThreadHoldsItAndNeverSaysThatAllAreHeld) {
  SystemClock clock;
  Trap trap(clock);
  std::atomic<bool> noted{false}, closed{false}, passed{false};
  std::thread poor([&] {
    const falcon::test::NoMemory none;
    Trap::noteEntry(trap.mySlot());
    trap.noteCall(clock.now());
    noted = true;
    closed.wait(false);
    trap.pass();
    passed = true;
  });
  waitUntil([&] { return noted.load(); });
  trap.close(60s);
  closed = true;
  closed.notify_all();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed);
  EXPECT_FALSE(trap.holdsAll(0s));
  trap.open();
  poor.join();
  EXPECT_TRUE(passed);
}

TEST(Trap, IsNotClosedWhileAnActiveThreadIsOutside) {
  SystemClock clock;
  Trap trap(clock);
  trap.noteCall(clock.now());  // this thread called a moment ago and now computes
  Caller other(trap, clock);
  trap.close(60s);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(trap.holdsAll(1h));
  waitUntil([&] { return trap.holdsAll(1ms); });  // who has not called for long is not waited for
  trap.open();
}

class OneEvent final : public CallEvent {
 public:
  void enter() noexcept override { ++entered; }
  void takeBack() noexcept override { --entered; }
  bool isCalledOff() const noexcept override { return calledOff; }
  std::atomic<bool> calledOff{false};
  std::atomic<int> entered{1};
};

TEST(Trap, LetsGoWhoIsHeldForAnEventThatIsCalledOff) {
  SystemClock clock;
  Trap trap(clock);
  OneEvent stays, goes;
  trap.close(60s);
  std::thread held([&] { trap.passEvent(stays); }), letGo([&] { trap.passEvent(goes); });
  waitUntil([&] { return stays.entered == 0 && goes.entered == 0; });
  goes.calledOff = true;
  trap.lookAgain();
  letGo.join();
  EXPECT_EQ(goes.entered, 0) << "it was not entered";
  EXPECT_TRUE(trap.closed());
  EXPECT_EQ(stays.entered, 0);
  trap.open();
  held.join();
  EXPECT_EQ(stays.entered, 1);
}

TEST(Trap, OpensItselfAtItsLimit) {
  SystemClock clock;
  Trap trap(clock);
  Caller caller(trap, clock);
  trap.close(50ms);
  waitUntil([&] { return !trap.closed(); });
  const long before = caller.calls();
  waitUntil([&] { return caller.calls() > before; });
}

TEST(Trap, ThreadsThatRestDoNotCount) {
  SystemClock clock;
  Trap trap(clock);
  trap.noteCall(clock.now());
  trap.close(60s);
  std::thread held([&] { trap.pass(); });
  EXPECT_FALSE(trap.holdsAll(1h));
  trap.noteCall(HoldPoint::resting);
  waitUntil([&] { return trap.holdsAll(1h); });
  trap.noteCall(clock.now());
  EXPECT_FALSE(trap.holdsAll(1h));
  trap.open();
  held.join();
}

TEST(Trap, ThreadsThatEndedDoNotCount) {
  SystemClock clock;
  Trap trap(clock);
  std::thread([&] { trap.noteCall(clock.now()); }).join();
  trap.close(60s);
  EXPECT_FALSE(trap.holdsAll(1h));  // nobody at all is held
  std::thread held([&] { trap.pass(); });
  waitUntil([&] { return trap.holdsAll(1h); });
  trap.open();
  held.join();
}

TEST(Trap, ARankThatDoesNotCallIsGivenTimeAndThenCountsAsHeld) {
  ManualClock clock;
  Trap trap(clock);
  clock.advance(1h);
  trap.noteCall(clock.now());
  clock.advance(10s);
  trap.close(60s);
  EXPECT_FALSE(trap.holdsAll(3s)) << "it may come any moment";
  clock.advance(3s);
  EXPECT_TRUE(trap.holdsAll(3s));
}

TEST(Trap, WhoIsInsideOfACallAndNotHeldIsWaitedFor) {
  ManualClock clock;
  Trap trap(clock);
  clock.advance(1h);
  Trap::noteEntry(trap.mySlot());
  clock.advance(10s);  // a long call, in which this thread is not held yet
  trap.close(60s);
  clock.advance(10s);
  EXPECT_FALSE(trap.holdsAll(3s));
  trap.noteCall(clock.now());
  clock.advance(4s);
  EXPECT_TRUE(trap.holdsAll(3s));
}

TEST(Trap, WhoAsksForItCountsAsHeldAndIsNotMissedAfterwards) {
  ManualClock clock;
  Trap trap(clock);
  clock.advance(1h);
  trap.noteCall(clock.now());
  {
    const Trap::Asking asking(trap);
    trap.close(60s);
    EXPECT_TRUE(trap.holdsAll(1h));
  }
  EXPECT_FALSE(trap.holdsAll(1h)) << "nobody is held now";
}

TEST(Trap, ThatHoldsNobodyExpiresToo) {
  ManualClock clock;
  Trap trap(clock);
  trap.close(5s);
  clock.advance(4s);
  trap.expire();
  EXPECT_TRUE(trap.closed());
  clock.advance(1s);
  trap.expire();
  EXPECT_FALSE(trap.closed());
}

/// An AllReduce.
class Event final : public CallEvent {
 public:
  explicit Event(CallCounts& counts) : counts_(counts) {}
  void enter() noexcept override { counts_.enter(call_); }
  void takeBack() noexcept override { counts_.takeBack(call_); }

 private:
  CallCounts& counts_;
  const Call call_{.operation = Operation::allReduce};
};

void makeEvent(Trap& trap, const Clock& clock, CallCounts& counts) {
  Event event(counts);
  event.enter();
  trap.passEvent(event);
  trap.pass();
  counts.leave();
  trap.noteCall(clock.now());
}

TEST(Trap, ADrainingProcessIsHeldWhenWhatItHasLaunchedIsDone) {
  SystemClock clock;
  Trap trap(clock);
  CallCounts counts(2);
  trap.watch({7, 0}, counts);
  trap.close(600s, true);
  int asked = 0;
  bool done = false;
  const auto isDone = [&] { return ++asked, done; };
  EXPECT_FALSE(trap.takeNews(1h, isDone)->working) << "it does not call, and has time to come";
  EXPECT_EQ(asked, 0) << "nobody is to ask before";
  const auto working = trap.takeNews(0ns, isDone);
  ASSERT_TRUE(working.has_value());
  EXPECT_TRUE(working->working);
  EXPECT_FALSE(working->held);
  EXPECT_FALSE(trap.takeNews(0ns, isDone).has_value()) << "nothing has changed";
  done = true;
  const auto held = trap.takeNews(0ns, isDone);
  ASSERT_TRUE(held.has_value());
  EXPECT_TRUE(held->held);
  EXPECT_FALSE(held->working);
}

TEST(Trap, DrainingHoldsAtTheNextEventUnlessOthersWaitForIt) {
  SystemClock clock;
  Trap trap(clock);
  CallCounts counts(2);
  trap.watch({7, 0}, counts);
  EXPECT_FALSE(trap.takeNews(1ms).has_value());
  trap.close(600s, true);
  EXPECT_TRUE(trap.draining());
  const auto first = trap.takeNews(1h);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->report.version, 1u);
  EXPECT_FALSE(first->held);
  EXPECT_FALSE(trap.takeNews(1h).has_value()) << "nothing has changed";

  std::thread caller([&] {
    for (int i = 0; i < 5; ++i) makeEvent(trap, clock, counts);
  });
  waitUntil([&] { return trap.holdsAll(1h); });
  EXPECT_EQ(counts.collectives(), 0u);
  trap.order(2, {{{7}, 3}});
  waitUntil([&] { return counts.collectives() == 3 && trap.holdsAll(1h); });
  const auto news = trap.takeNews(1h);
  ASSERT_TRUE(news.has_value());
  EXPECT_TRUE(news->held);
  EXPECT_EQ(news->report.version, 2u);
  EXPECT_FALSE(news->report.below);
  EXPECT_EQ(news->report.entered, (Counts{{{7}, 3}}));
  trap.open();
  caller.join();
  EXPECT_EQ(counts.collectives(), 5u);
  EXPECT_FALSE(trap.draining());
}

TEST(Trap, WhoWasFrozenGoesOnToItsNextEvent) {
  SystemClock clock;
  Trap trap(clock);
  CallCounts counts(2);
  trap.watch({7, 0}, counts);
  trap.close(600s);
  std::atomic<bool> wentOn{false};
  std::thread caller([&] {
    trap.pass();  // in the midst of a call
    wentOn = true;
    makeEvent(trap, clock, counts);
  });
  waitUntil([&] { return trap.holdsAll(1h); });
  EXPECT_FALSE(wentOn);
  trap.drain();
  waitUntil([&] { return wentOn.load() && trap.holdsAll(1h); });
  EXPECT_EQ(counts.collectives(), 0u);
  trap.open();
  caller.join();
  EXPECT_EQ(counts.collectives(), 1u);
}

TEST(Trap, DrainingAtItsLimitItOpensItself) {
  SystemClock clock;
  Trap trap(clock);
  CallCounts counts(2);
  trap.watch({7, 0}, counts);
  trap.close(50ms, true);
  makeEvent(trap, clock, counts);
  EXPECT_FALSE(trap.closed());
  EXPECT_EQ(counts.collectives(), 1u);
}

}  // namespace
}  // namespace falcon::control
