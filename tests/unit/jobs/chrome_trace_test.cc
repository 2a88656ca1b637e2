#include "trace/chrome_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/jobs/ranks.h"
#include "unit/jobs/trace_rules.h"

namespace falcon::trace {
namespace {

using nlohmann::json;
using testing::IsEmpty;
using tests::brokenRules;
using tests::MadeUpJob;

std::vector<json> eventsOf(const json& trace, const std::string& key, const std::string& value) {
  std::vector<json> found;
  for (const json& event : trace.at("traceEvents"))
    if (event.value(key, "") == value) found.push_back(event);
  return found;
}

TEST(ChromeTrace, OfNothingIsStillATrace) {
  EXPECT_THAT(brokenRules(chromeTrace({})), IsEmpty());
  EXPECT_THAT(brokenRules(chromeTrace(MadeUpJob(2).ranks)), IsEmpty());
}

TEST(ChromeTrace, HasEveryCallOnItsRankInMicroseconds) {
  MadeUpJob job(2);
  job.finished(Operation::allReduce, 0, -1, 5, 100s, 100s + 1500us);
  job.finished(Operation::allReduce, 1, -1, 5, 100s + 1ms, 100s + 1250us);
  const json trace = chromeTrace(job.ranks);
  EXPECT_THAT(brokenRules(trace), IsEmpty()) << trace.dump(1);
  const auto calls = eventsOf(trace, "cat", "collective");
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].at("pid"), 0);
  EXPECT_DOUBLE_EQ(calls[0].at("ts"), 0);
  EXPECT_DOUBLE_EQ(calls[0].at("dur"), 1500);
  EXPECT_EQ(calls[0].at("args").at("sequence"), 5);
  EXPECT_EQ(calls[0].at("args").at("bytes"), 400);
  EXPECT_EQ(calls[1].at("pid"), 1);
  EXPECT_DOUBLE_EQ(calls[1].at("ts"), 1000);
  EXPECT_DOUBLE_EQ(calls[1].at("dur"), 250);
  // Rank 0 waits for rank 1, inside of its call.
  const auto waiting = eventsOf(trace, "cat", "waiting");
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_EQ(waiting[0].at("name"), "waiting for rank 1");
  EXPECT_EQ(waiting[0].at("pid"), 0);
  EXPECT_DOUBLE_EQ(waiting[0].at("dur"), 1000);
}

TEST(ChromeTrace, CallsHaveTheirLabels) {
  MadeUpJob job(2);
  job.finished(Operation::allReduce, 0, -1, 5, 100s, 100s + 1ms);
  job.finished(Operation::allReduce, 0, -1, 6, 101s, 101s + 1ms);
  auto& log = job.ranks[0].log;
  ASSERT_EQ(log.latest.size(), 2u);
  log.labelled = {LabelledCall::of(log.latest[1], {9, 17})};
  const auto calls = eventsOf(chromeTrace(job.ranks), "cat", "collective");
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_FALSE(calls[0].at("args").contains("tag"));
  EXPECT_FALSE(calls[0].at("args").contains("iteration"));
  EXPECT_EQ(calls[1].at("args").at("tag"), 9);
  EXPECT_EQ(calls[1].at("args").at("iteration"), 17);
}

TEST(ChromeTrace, ChannelsHaveThreadsOfTheirOwnWithTheirTransfers) {
  MadeUpJob job(2);
  job.finished(Operation::allReduce, 0, -1, 5, 100s, 100s + 10ms);
  const auto transfer = [](int channel, bool sending, Nanoseconds start, Nanoseconds stop) {
    return TransferTiming{.communicator = tests::world,
                          .sequence = 5,
                          .channel = channel,
                          .peer = 1,
                          .sending = sending,
                          .bytes = 4096,
                          .start = 100s + start,
                          .stop = 100s + stop,
                          .waiting = 1ms,
                          .moving = 2ms};
  };
  // In any order; two of channel 1 overlap; one is older than the calls.
  job.ranks[0].log.transfers = {transfer(1, true, 4ms, 9ms), transfer(0, true, 0ms, 3ms), transfer(0, false, 1ms, 4ms),
                                transfer(1, true, 2ms, 6ms), transfer(0, true, 3ms, 5ms), transfer(0, true, -9s, -8s)};
  const json trace = chromeTrace(job.ranks);
  EXPECT_THAT(brokenRules(trace), IsEmpty()) << trace.dump(1);
  const auto transfers = eventsOf(trace, "cat", "transfer");
  ASSERT_EQ(transfers.size(), 5u);
  std::map<std::string, std::vector<double>> starts;
  for (const json& event : transfers)
    for (const json& name : eventsOf(trace, "name", "thread_name"))
      if (name.at("pid") == event.at("pid") && name.at("tid") == event.at("tid"))
        starts[name.at("args").at("name")].push_back(event.at("ts"));
  EXPECT_EQ(starts,
            (std::map<std::string, std::vector<double>>{{"data parallel 0 \"dp\" channel 0 sends", {0, 3000}},
                                                        {"data parallel 0 \"dp\" channel 0 receives", {1000}},
                                                        {"data parallel 0 \"dp\" channel 1 sends", {2000}},
                                                        {"data parallel 0 \"dp\" channel 1 sends (2)", {4000}}}));
  EXPECT_EQ(transfers[0].at("name"), "to rank 1");
  EXPECT_DOUBLE_EQ(transfers[0].at("dur"), 3000);
  EXPECT_DOUBLE_EQ(transfers[0].at("args").at("waiting_us"), 1000);
  EXPECT_EQ(transfers[0].at("args").at("bytes"), 4096);
}

/// As a profiler tells it of a kernel: no bytes, and the peer is the rank itself.
TEST(ChromeTrace, AChannelsOwnWorkHasAThreadOfItsOwn) {
  MadeUpJob job(2);
  job.finished(Operation::allReduce, 0, -1, 5, 100s, 100s + 10ms);
  TransferTiming transfer{.communicator = tests::world,
                          .sequence = 5,
                          .channel = 2,
                          .peer = 0,
                          .start = 100s + 1ms,
                          .stop = 100s + 4ms,
                          .waiting = 1ms,
                          .moving = 2ms};
  job.ranks[0].log.transfers = {transfer};
  transfer.peer = 1;
  transfer.bytes = 100;
  job.ranks[0].log.transfers.push_back(transfer);
  const json trace = chromeTrace(job.ranks);
  EXPECT_THAT(brokenRules(trace), IsEmpty()) << trace.dump(1);
  const auto transfers = eventsOf(trace, "cat", "transfer");
  ASSERT_EQ(transfers.size(), 2u);
  EXPECT_EQ(transfers[0].at("name"), "works");
  EXPECT_EQ(transfers[1].at("name"), "from rank 1");
  EXPECT_NE(transfers[0].at("tid"), transfers[1].at("tid"));
}

TEST(ChromeTrace, MessagesFlowFromTheirSendToTheirReceive) {
  MadeUpJob job(2);
  job.finished(Operation::receive, 1, 0, 3, 100s, 100s + 2ms);
  job.finished(Operation::send, 0, 1, 3, 100s + 1ms, 100s + 2ms);
  const json trace = chromeTrace(job.ranks);
  EXPECT_THAT(brokenRules(trace), IsEmpty()) << trace.dump(1);
  const auto begin = eventsOf(trace, "ph", "s"), end = eventsOf(trace, "ph", "f");
  ASSERT_EQ(begin.size(), 1u);
  ASSERT_EQ(end.size(), 1u);
  EXPECT_EQ(begin[0].at("pid"), 0);
  EXPECT_EQ(end[0].at("pid"), 1);
}

TEST(ChromeTrace, GroupsAndCallsInFlightKeepTheRules) {
  MadeUpJob job(3);
  for (const Rank peer : {1, 2}) {
    job.finished(Operation::send, 0, peer, 0, 100s, 100s + 5ms).grouped = true;
    job.finished(Operation::receive, 0, peer, 0, 100s, 100s + 5ms).grouped = true;
  }
  job.inFlight(Operation::allReduce, 0, -1, 0, 101s);
  const json trace = chromeTrace(job.ranks);
  EXPECT_THAT(brokenRules(trace), IsEmpty()) << trace.dump(1);
  const auto collectives = eventsOf(trace, "cat", "collective");
  ASSERT_EQ(collectives.size(), 1u);
  EXPECT_EQ(collectives[0].at("args").at("in_flight"), true);
  EXPECT_DOUBLE_EQ(collectives[0].at("dur"), 9e6);
}

// The checker sees what it is there for.
TEST(ChromeTrace, TheRulesRefuseWhatIsWrong) {
  MadeUpJob job(2);
  job.finished(Operation::receive, 1, 0, 3, 100s, 100s + 2ms);
  job.finished(Operation::send, 0, 1, 3, 100s + 1ms, 100s + 2ms);
  const json right = chromeTrace(job.ranks);
  for (std::size_t i = 0; i < right.at("traceEvents").size(); ++i)
    for (const char* key : {"ph", "name", "pid", "tid", "ts", "dur", "id", "cat", "bp"}) {
      json wrong = right;
      json& event = wrong["traceEvents"][i];
      if (!event.contains(key)) continue;
      event.erase(key);
      EXPECT_FALSE(brokenRules(wrong).empty()) << key << " of " << right.at("traceEvents")[i];
    }
  json turned = right;
  std::reverse(turned["traceEvents"].begin(), turned["traceEvents"].end());
  EXPECT_FALSE(brokenRules(turned).empty());
}

}  // namespace
}  // namespace falcon::trace
