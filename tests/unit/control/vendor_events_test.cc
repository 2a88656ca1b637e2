#include "control/vendor_events.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "control/handed_calls.h"
#include "instrument/call_log_view.h"

namespace falcon::control {
namespace {

class KeptTransfers final : public TransferRecorder {
 public:
  void enable(bool on) { enabled_.store(on); }
  void record(const TransferTiming& timing) noexcept override { kept.push_back(timing); }
  std::vector<TransferTiming> kept;
};

class OneCall final : public HandedCalls {
 public:
  explicit OneCall(const HandedCall& call) : call_(call) { areHanded(); }

 private:
  std::optional<Named> find(const ToldCall& told) override {
    if (placeOf(told, 1, 0, false, [this](int) { return call_; }) < 0) return std::nullopt;
    return Named{call_.communicator, 33};
  }
  const HandedCall call_;
};

class KeptChoice final : public profiler::EventChoice {
 public:
  void want(profiler::Depth depth) noexcept override { wanted.push_back(depth); }
  void refresh() noexcept override { ++refreshed; }
  std::vector<profiler::Depth> wanted;
  int refreshed = 0;
};

struct EventsOfAJob : testing::Test {
  EventsOfAJob() { events.jobBegins(transfers, *log); }
  ~EventsOfAJob() override {
    log.reset();
    std::filesystem::remove(path);
  }

  CallRecord toldCall(std::size_t count = 100) const {
    CallRecord call;
    call.communicator = facts.id;
    call.rank = facts.rank;
    call.count = count;
    return call;
  }
  std::size_t transfersInLog() const { return instrument::readCallLog(path, 100)->transfers.size(); }

  const std::string path = testing::TempDir() + "vendor-events-" + std::to_string(getpid());
  const plugin::ProfiledCommunicator facts{.id = 0x77, .name = nullptr, .nodes = 1, .ranks = 4, .rank = 2};
  const HandedCall sum{11, 2, 4, Operation::allReduce, 400, -1, false};
  KeptTransfers transfers;
  std::unique_ptr<instrument::CallLog> log = std::move(*instrument::CallLog::create(path, {"job", "host", 2, 4}, 64));
  VendorEvents events;
};

TEST_F(EventsOfAJob, ACallGetsTheNamesThatItHasInTheLog) {
  const int place = events.joined(facts);
  CallRecord call = toldCall();
  EXPECT_FALSE(events.enter(call, place)) << "the thread is in no call";
  {
    const OneCall handed(sum);
    CallRecord other = toldCall(99);
    EXPECT_FALSE(events.enter(other, place)) << "it is another one";
    EXPECT_EQ(events.enter(call, place), noFlight);
    EXPECT_EQ(call.communicator, sum.communicator);
    EXPECT_EQ(call.sequence, 33U);
    EXPECT_FALSE(events.enter(call, noPlace));
  }
  {
    const OneCall ofAnother({22, 2, 4, Operation::allReduce, 400, -1, false});
    EXPECT_FALSE(events.enter(call, place)) << "that communicator is known by now";
  }
  EXPECT_FALSE(events.enter(call, place)) << "the thread is in none any more";
  events.left(facts);
  const OneCall handed(sum);
  EXPECT_FALSE(events.enter(call, place)) << "it is finalized";
}

TEST_F(EventsOfAJob, TransfersAreTheJobsWhileItIsProfiledAndNoLonger) {
  const TransferTiming timing{.communicator = 11, .peer = 1, .bytes = 5, .start = 1ns, .stop = 2ns};
  events.transfer(timing);
  EXPECT_TRUE(transfers.kept.empty());
  transfers.enable(true);
  events.transfer(timing);
  ASSERT_EQ(transfers.kept.size(), 1U);
  EXPECT_EQ(transfersInLog(), 0U) << "that is the recorder's business";
  events.ownWork(timing);
  EXPECT_EQ(transfers.kept.size(), 1U) << "no link carried it";
  EXPECT_EQ(transfersInLog(), 1U);
  KeptTransfers another;
  events.jobEnds(another);
  events.transfer(timing);
  EXPECT_EQ(transfers.kept.size(), 2U) << "it was another job that ended";
  events.jobEnds(transfers);
  events.transfer(timing);
  events.ownWork(timing);
  EXPECT_EQ(transfers.kept.size(), 2U);
  EXPECT_EQ(transfersInLog(), 1U);
}

TEST_F(EventsOfAJob, EventsAreWantedWhileTheJobIsProfiled) {
  KeptChoice choice;
  events.beforeCalls(&transfers, 1s);  // nobody has asked
  events.ask(choice);
  events.beforeCalls(&transfers, 2s);
  EXPECT_TRUE(choice.wanted.empty());
  EXPECT_EQ(choice.refreshed, 1);
  events.beforeCalls(&transfers, 2s + 10ms);
  EXPECT_EQ(choice.refreshed, 1) << "not with every call";
  transfers.enable(true);
  events.beforeCalls(&transfers, 2s + 11ms);
  events.beforeCalls(&transfers, 2s + 12ms);
  EXPECT_EQ(choice.wanted, std::vector{profiler::Depth::channels});
  transfers.enable(false);
  events.beforeCalls(&transfers, 2s + 13ms);
  EXPECT_EQ(choice.wanted.back(), profiler::Depth::nothing);
  EXPECT_EQ(choice.wanted.size(), 2U);
  VendorEvents::childBegins();
}

}  // namespace
}  // namespace falcon::control
