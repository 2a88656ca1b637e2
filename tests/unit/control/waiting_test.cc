#include "control/waiting.h"

#include <gtest/gtest.h>

#include <set>

#include "base/clock.h"
#include "control/call_window.h"
#include "control/decisions.h"

namespace falcon::control {
namespace {

constexpr CommunicatorId everyRank = 7, pair = 8;

struct Silent final : Outbox {
  void to(ProcessId process, const Message& message) override { sent.emplace_back(process, message); }
  void toAll(const Message&) override {}
  std::vector<std::pair<ProcessId, Message>> sent;
};

/// Four ranks that compute, then sum in pairs and over all: iterations of 10 ms.
struct WaitingJob {
  JobView view;
  ManualClock clock;
  Silent outbox;
  ClockBook clocks{"here", clock, outbox};

  WaitingJob() {
    for (Rank rank = 0; rank < 4; ++rank) view.handle(processOf(rank), Introduce{rank, "host", "", "", 1, "here"});
    view.handle(processOf(0), CommunicatorFormed{everyRank, true, {0, 1, 2, 3}, {}, {}, {}});
    view.handle(processOf(0), CommunicatorFormed{pair, true, {0, 1}, {}, {}, {}});
    fill(&MemberView::healthyCalls, 0, 1);
    for (auto& [process, member] : view.members()) {
      member.healthy = RankMeans{.iterations = 4, .duration = 0.010};
      member.recent.assign(4, Sample{.seconds = 0.020});
    }
  }
  static ProcessId processOf(Rank rank) { return static_cast<ProcessId>(100 + rank); }

  // A rank computes so many times longer than 9 ms; everybody waits for it. Ranks 0 and 1 meet in the middle.
  void fill(std::vector<instrument::TimelineCall> MemberView::*calls, Rank slow, double factor) {
    const auto ms = [](double value) { return Nanoseconds(static_cast<std::int64_t>(value * 1e6)); };
    const double iteration = 9 * factor + 1;
    for (Rank rank = 0; rank < 4; ++rank) {
      auto& list = view.members().at(processOf(rank)).*calls;
      const auto add = [&](CommunicatorId id, int number, double enter, double leave) {
        list.push_back({id, Operation::allReduce, -1, static_cast<std::uint64_t>(number), 64, ms(enter), ms(leave)});
      };
      for (int i = 0; i < 5; ++i) {
        const double start = i * iteration, pace = rank == slow ? factor : 1;
        const double together = 4 * (slow < 2 ? factor : 1);
        if (rank < 2) add(pair, i, start + 4 * pace, start + together + 0.1);
        const double ready = rank < 2 ? together + 0.1 + 4.9 * pace : 9 * pace;
        add(everyRank, i, start + ready, start + iteration);
      }
    }
  }
};

TEST(Waiting, TheChainLeadsToTheSlowRank) {
  for (const Rank slow : {0, 1, 2, 3}) {
    WaitingJob job;
    job.fill(&MemberView::calls, slow, 2);
    const auto blame = blameOf(job.view, job.clocks, 4);
    ASSERT_TRUE(blame);
    ASSERT_EQ(blame->sources.size(), 1U) << sentenceOf(*blame, job.view);
    EXPECT_EQ(blame->sources[0].rank, slow);
    EXPECT_NE(sentenceOf(*blame, job.view).find("rank " + std::to_string(slow)), std::string::npos);
  }
}

TEST(Waiting, TheJobIsAsItWasAfterwards) {
  WaitingJob job;
  job.fill(&MemberView::calls, 1, 2);
  const auto sizes = [&] {
    std::vector<std::size_t> all;
    for (const auto& [process, member] : job.view.members())
      all.insert(all.end(), {member.calls.size(), member.healthyCalls.size()});
    return all;
  };
  const auto before = sizes();
  ASSERT_TRUE(blameOf(job.view, job.clocks, 4));
  EXPECT_EQ(sizes(), before);
  EXPECT_GT(before.front(), 0U);
}

TEST(Waiting, SaysNothingWithoutAllCallsOrWithSeveralRanksAProcessOrUnknownClocks) {
  const auto reason = [](WaitingJob& job) {
    const auto blame = blameOf(job.view, job.clocks, 4);
    return blame ? "" : blame.error().message();
  };
  WaitingJob missing;
  missing.fill(&MemberView::calls, 1, 2);
  missing.view.members().at(WaitingJob::processOf(3)).calls.clear();
  EXPECT_NE(reason(missing).find("no call of rank 3 was timed now"), std::string::npos) << reason(missing);

  WaitingJob unread;
  unread.fill(&MemberView::calls, 1, 2);
  unread.view.members().at(WaitingJob::processOf(2)).callsOnJobsClock = false;
  EXPECT_NE(reason(unread).find("the clock of rank 2's device"), std::string::npos) << reason(unread);

  WaitingJob shared;
  shared.fill(&MemberView::calls, 1, 2);
  shared.view.handle(1, CommunicatorFormed{9, true, {0, 0, 1}, {}, {}, {}});
  EXPECT_NE(reason(shared).find("several ranks"), std::string::npos) << reason(shared);

  WaitingJob far;
  far.fill(&MemberView::calls, 1, 2);
  far.clocks.handle(WaitingJob::processOf(2), Introduce{2, "host", "", "", 1, "elsewhere"});
  EXPECT_NE(reason(far).find("the clock of rank 2"), std::string::npos) << reason(far);

  WaitingJob split;
  split.fill(&MemberView::calls, 1, 2);
  split.view.members().at(WaitingJob::processOf(0)).healthy->microBatches = 3;
  EXPECT_NE(reason(split).find("micro-batches"), std::string::npos) << reason(split);
}

TEST(ClockBook, AsksOnlyOtherMachinesAndAlignsThem) {
  ManualClock clock;
  Silent outbox;
  ClockBook book("here", clock, outbox);
  book.handle(1, Introduce{0, "", "", "", 1, "here"});
  book.handle(2, Introduce{1, "", "", "", 1, "elsewhere"});
  EXPECT_EQ(book.toOurs(1, 5s), 5s);
  EXPECT_EQ(book.errorBound(1), 0ns);
  EXPECT_EQ(book.errorBound(2), Nanoseconds::max());
  constexpr Nanoseconds ahead = 1000s;
  for (int i = 0; i < 200; ++i) {
    clock.advance(100ms);
    outbox.sent.clear();
    book.tick();
    for (const auto& [process, message] : outbox.sent) {
      EXPECT_EQ(process, 2U);
      const auto asked = std::get<AskClock>(message).asked;
      clock.advance(1ms);
      const auto theirs = (clock.now() + ahead).count();
      clock.advance(1ms);
      book.handle(2, ClockAnswer{asked, theirs, theirs});
    }
  }
  EXPECT_LE(book.errorBound(2), 3ms);
  EXPECT_NEAR(seconds(book.toOurs(2, clock.now() + ahead)), seconds(clock.now()), 2e-3);
  book.left(2);
  clock.advance(1min);
  outbox.sent.clear();
  book.tick();
  EXPECT_TRUE(outbox.sent.empty());
}

TEST(CallWindow, KeepsTheNewestUpToTheLimitAndNothingWhenOff) {
  CallWindow window;
  window.add({});
  EXPECT_TRUE(window.take().calls.empty());
  window.start(3);
  for (std::uint64_t i = 0; i < 10; ++i) window.add({.type = DataType::f32, .count = 2, .sequence = i});
  const auto calls = window.take().calls;
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0].sequence, 7U);
  EXPECT_EQ(calls[0].bytes, 8U);
  window.add({});
  EXPECT_TRUE(window.take().calls.empty());
}

}  // namespace
}  // namespace falcon::control
