// What becomes of the events that NCCL tells.
#include "profiler/observer.h"

#include <gmock/gmock.h>

#include <optional>
#include <thread>

#include "harness/fake_plugin_library.h"
#include "harness/fake_profiler.h"
#include "harness/told_events.h"

namespace falcon::profiler {
namespace {

using plugin::Event;
using test::FakePlugin;
using test::FakeProfilerLog;
using test::ToldCommunicator;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class KeepingOutlet final : public Outlet {
 public:
  int joined(const plugin::ProfiledCommunicator&) noexcept override { return ++communicators; }
  void left(const plugin::ProfiledCommunicator&) noexcept override { --communicators; }
  std::optional<Flight> enter(CallRecord& call, int) noexcept override {
    if (refuses) return std::nullopt;
    if (renames != 0) call.communicator = call.sequence = renames;
    entered.push_back(call);
    return Flight{static_cast<std::int32_t>(entered.size())};
  }
  void label(const LabelledCall& call) noexcept override { labels.push_back(call); }
  void leave(Flight, const CallRecord& call) noexcept override { left_.push_back(call); }
  void transfer(const TransferTiming& timing) noexcept override { transfers.push_back(timing); }
  void ownWork(const TransferTiming& timing) noexcept override { works.push_back(timing); }

  int communicators = 0;
  std::vector<CallRecord> entered, left_;
  std::vector<LabelledCall> labels;
  std::vector<TransferTiming> transfers, works;
  bool refuses = false;
  std::uint64_t renames = 0;
};

/// The observer as if it were a plugin of the newest version.
class ObserverCalls final : public plugin::ProfilerCalls {
 public:
  explicit ObserverCalls(Observer& observer) : observer_(observer) {}
  int version() const override { return 7; }
  const char* name() const override { return "Falcon"; }
  std::uint32_t knownEvents() const override { return plugin::eventsOfV7; }
  std::vector<const char*> missing() const override { return {}; }
  plugin::ResultCode init(const plugin::ProfiledCommunicator& facts, void** context, int* mask) const override {
    return observer_.init(facts, context, mask);
  }
  plugin::ResultCode start(void* context, void** handle, const Event& event) const override {
    return observer_.start(context, handle, event);
  }
  plugin::ResultCode stop(void* handle) const override { return observer_.stop(handle); }
  plugin::ResultCode state(void* handle, plugin::EventState state, plugin::StateArguments* arguments) const override {
    return observer_.state(handle, state, arguments);
  }
  plugin::ResultCode finalize(void* context) const override { return observer_.finalize(context); }

 private:
  Observer& observer_;
};

const plugin::ProfiledCommunicator facts{.id = 77, .name = "dp", .nodes = 2, .ranks = 4, .rank = 2};

struct Observed {
  explicit Observed(std::uint32_t wanted, const std::string& chain = "")
      : chained("NCCL_FALCON_CHAINED_PROFILER", chain), observer(&outlet, chained, wanted) {}
  KeepingOutlet outlet;
  plugin::ProfilerDirectory chained;
  Observer observer;
  ObserverCalls calls{observer};
  int mask = 0;
};

TEST(Observer, CallsAreRecordedWithTheirNumbers) {
  Observed observed(callEvents);
  {
    ToldCommunicator told(observed.calls, facts, observed.mask);
    EXPECT_EQ(observed.mask, static_cast<int>(callEvents));
    told.allReduce(100, 2);
    told.allReduce(200, 2, nullptr, 9);
    told.send(50, 3);
    told.send(60, 3);
    EXPECT_EQ(observed.outlet.communicators, 1);
  }
  EXPECT_EQ(observed.outlet.communicators, 0);
  const auto& calls = observed.outlet.left_;
  ASSERT_EQ(calls.size(), 4U);
  EXPECT_EQ(calls[0].communicator, 77U);
  EXPECT_EQ(calls[0].operation, Operation::allReduce);
  EXPECT_EQ(calls[0].type, DataType::f32);
  EXPECT_EQ(calls[0].count, 100U);
  EXPECT_EQ(calls[0].rank, 2);
  EXPECT_EQ(calls[0].peer, -1);
  EXPECT_LE(calls[0].enter, calls[0].leave);
  EXPECT_EQ(calls[1].sequence, 1U);
  EXPECT_EQ(calls[2].operation, Operation::send);
  EXPECT_EQ(calls[2].peer, 3);
  EXPECT_EQ(calls[2].sequence, 0U);
  EXPECT_EQ(calls[3].sequence, 1U);
  ASSERT_EQ(observed.outlet.labels.size(), 1U);
  EXPECT_EQ(observed.outlet.labels[0].labels.tag, 9U);
  EXPECT_TRUE(observed.outlet.transfers.empty()) << "they were not asked for";
}

/// A transfer that waits for longer than it moves, and one that moves for longer than it waits.
void expectWaitingIsToldFromMoving(std::vector<TransferTiming>& transfers) {
  Observed observed(callEvents | channelEvents);
  ToldCommunicator told(observed.calls, facts, observed.mask);
  const ToldCommunicator::Transfer sends{.channel = 1, .peer = 3, .sends = true, .waiting = 30ms, .moving = 5ms};
  told.allReduce(100, 0, &sends);
  const ToldCommunicator::Transfer receives{.channel = 1, .peer = 1, .sends = false, .waiting = 5ms, .moving = 30ms};
  told.allReduce(100, 0, &receives);
  transfers = observed.outlet.transfers;
  ASSERT_EQ(transfers.size(), 2U);
  EXPECT_EQ(transfers[0].sequence, 0U);
  EXPECT_EQ(transfers[1].sequence, 1U);
  EXPECT_EQ(transfers[0].channel, 1);
  EXPECT_EQ(transfers[0].peer, 3);
  EXPECT_TRUE(transfers[0].sending);
  EXPECT_FALSE(transfers[1].sending);
  for (const TransferTiming& transfer : transfers) {
    EXPECT_EQ(transfer.communicator, 77U);
    EXPECT_EQ(transfer.bytes, 2000U);
    EXPECT_LE(transfer.waiting + transfer.moving, transfer.stop - transfer.start + 1ms);
  }
  // Slept for twice each.
  EXPECT_GE(transfers[0].waiting, 60ms);
  EXPECT_GE(transfers[0].moving, 10ms);
  EXPECT_GE(transfers[1].moving, 60ms);
}

TEST(Observer, WaitingIsToldFromMoving) {
  // On a busy machine a short sleep may take as long as the long one: not each time.
  bool sendWaits = false, receiveMoves = false;
  for (int attempt = 0; attempt < 10 && !(sendWaits && receiveMoves); ++attempt) {
    std::vector<TransferTiming> transfers;
    ASSERT_NO_FATAL_FAILURE(expectWaitingIsToldFromMoving(transfers));
    sendWaits = sendWaits || transfers[0].waiting > transfers[0].moving;
    receiveMoves = receiveMoves || transfers[1].moving > transfers[1].waiting;
  }
  EXPECT_TRUE(sendWaits);
  EXPECT_TRUE(receiveMoves);
}

/// On the host's clock, and what a phase of waiting was is waiting.
TEST(Observer, AChannelsWorkIsOnTheHostsClock) {
  Observed observed(callEvents | channelEvents);
  ToldCommunicator told(observed.calls, facts, observed.mask);
  const Nanoseconds before = SystemClock::instance().now();
  told.allReduce(100, 2);
  const Nanoseconds after = SystemClock::instance().now();
  const auto& works = observed.outlet.works;
  ASSERT_EQ(works.size(), 2U);
  for (const TransferTiming& work : works) {
    EXPECT_EQ(work.peer, facts.rank);
    EXPECT_GE(work.start, before);
    EXPECT_LE(work.stop, after);
    EXPECT_GE(work.waiting, 2ms);
    EXPECT_GE(work.moving, 2ms);
  }
  EXPECT_EQ(works[1].channel, 1);
  EXPECT_TRUE(observed.outlet.transfers.empty());
}

/// NCCL has several steps of a connection under way, and the time is the connection's.
TEST(Observer, TheTimeOfStepsThatOverlapCountsOnce) {
  Observed observed(callEvents | channelEvents);
  void* context = nullptr;
  ASSERT_EQ(observed.observer.init(facts, &context, &observed.mask), plugin::success);
  const auto start = [&](Event event) {
    void* handle = nullptr;
    EXPECT_EQ(observed.observer.start(context, &handle, event), plugin::success);
    return handle;
  };
  Event call{.type = plugin::collectiveEvent, .rank = facts.rank};
  call.collective = {.function = "AllReduce", .count = 1, .type = "ncclFloat32"};
  void* const collective = start(call);
  observed.observer.stop(collective);
  Event sends{.type = plugin::proxyOpEvent, .parent = collective, .rank = facts.rank};
  sends.proxyOp = {.process = getpid(), .peer = 1, .steps = 2, .sends = 1};
  void* const operation = start(sends);
  const Event step{.type = plugin::proxyStepEvent, .parent = operation, .rank = facts.rank};
  void* const steps[] = {start(step), start(step)};
  plugin::StateArguments bytes{};
  bytes.proxyStep.transferred = 10;
  for (void* const each : steps) observed.observer.state(each, plugin::EventState::sendPeerWait, &bytes);
  std::this_thread::sleep_for(20ms);
  observed.observer.state(steps[0], plugin::EventState::sendWait, &bytes);
  std::this_thread::sleep_for(20ms);
  observed.observer.state(steps[1], plugin::EventState::sendWait, &bytes);
  std::this_thread::sleep_for(20ms);
  for (void* const each : steps) observed.observer.stop(each);
  observed.observer.stop(operation);
  ASSERT_EQ(observed.outlet.transfers.size(), 1U);
  const TransferTiming& timing = observed.outlet.transfers[0];
  EXPECT_EQ(timing.bytes, 20U);
  EXPECT_GE(timing.moving, 40ms) << "while either of them did";
  EXPECT_GE(timing.waiting, 20ms) << "before, and not what one of them waited beside the other's moving";
  EXPECT_LE(timing.moving + timing.waiting, timing.stop - timing.start);
  observed.observer.finalize(context);
}

TEST(Observer, ACallGoesByTheNamesThatTheOutletGivesIt) {
  Observed observed(callEvents | channelEvents);
  observed.outlet.renames = 5;
  ToldCommunicator told(observed.calls, facts, observed.mask);
  const ToldCommunicator::Transfer sends{.channel = 0, .peer = 3, .sends = true};
  told.allReduce(100, 1, &sends);
  ASSERT_EQ(observed.outlet.transfers.size(), 1U);
  ASSERT_EQ(observed.outlet.works.size(), 1U);
  for (const TransferTiming& each : {observed.outlet.transfers[0], observed.outlet.works[0]}) {
    EXPECT_EQ(each.communicator, 5U);
    EXPECT_EQ(each.sequence, 5U);
  }
}

TEST(Observer, OfACallThatTheOutletRefusesNothingIsTold) {
  Observed observed(callEvents | channelEvents);
  observed.outlet.refuses = true;
  ToldCommunicator told(observed.calls, facts, observed.mask);
  const ToldCommunicator::Transfer sends{.channel = 0, .peer = 3, .sends = true};
  told.allReduce(100, 1, &sends);
  EXPECT_TRUE(observed.outlet.left_.empty());
  EXPECT_TRUE(observed.outlet.transfers.empty());
  EXPECT_TRUE(observed.outlet.works.empty());
}

TEST(Observer, TheMaskFollowsWhatIsWanted) {
  Observed observed(0);
  ToldCommunicator told(observed.calls, facts, observed.mask);
  EXPECT_EQ(observed.mask, 0);
  told.allReduce(100, 1);
  EXPECT_TRUE(observed.outlet.entered.empty());
  observed.observer.want(callEvents);
  told.allReduce(100, 1);
  EXPECT_EQ(observed.outlet.entered.size(), 1U);
  observed.observer.want(0);
  EXPECT_EQ(observed.mask, 0);
}

/// PXN: the proxy of another process works for this one, and names an event that is not here.
TEST(Observer, AParentOfAnotherProcessIsNotLookedAt) {
  Observed observed(callEvents | channelEvents);
  void* context = nullptr;
  ASSERT_EQ(observed.observer.init(facts, &context, &observed.mask), plugin::success);
  Event event{.type = plugin::proxyOpEvent, .parent = reinterpret_cast<void*>(0x1234), .rank = 1};
  event.proxyOp = {.process = getpid() + 1, .peer = 1, .sends = 1};
  void* operation = nullptr;
  ASSERT_EQ(observed.observer.start(context, &operation, event), plugin::success);
  event.proxyOp.process = getpid();  // nor is one that is no event of ours
  void* other = nullptr;
  ASSERT_EQ(observed.observer.start(context, &other, event), plugin::success);
  observed.observer.stop(operation);
  observed.observer.stop(other);
  observed.observer.stop(reinterpret_cast<void*>(0x1234));
  EXPECT_TRUE(observed.outlet.transfers.empty());
  observed.observer.finalize(context);
}

// A proxy works for ranks of other processes (PXN), whose contexts are addresses there.
TEST(Observer, AContextOfAnotherProcessOrOfACommunicatorThatIsGoneIsNotLookedAt) {
  Observed observed(callEvents | channelEvents);
  void* context = nullptr;
  ASSERT_EQ(observed.observer.init(facts, &context, &observed.mask), plugin::success);
  for (void* const foreign : {reinterpret_cast<void*>(0x1234), static_cast<void*>(static_cast<char*>(context) + 1)})
    for (const auto type : {plugin::proxyOpEvent, plugin::proxyStepEvent, plugin::collectiveEvent}) {
      Event event{.type = type, .rank = 1};
      if (type == plugin::proxyOpEvent) event.proxyOp = {.process = getpid() + 1, .peer = 1, .sends = 1};
      void* handle = nullptr;
      EXPECT_EQ(observed.observer.start(foreign, &handle, event), plugin::success);
      EXPECT_EQ(observed.observer.stop(handle), plugin::success);
    }
  observed.observer.finalize(context);
  void* handle = nullptr;
  EXPECT_EQ(observed.observer.start(context, &handle, {.type = plugin::collectiveEvent}), plugin::success);
  EXPECT_EQ(observed.observer.stop(handle), plugin::success);
  EXPECT_TRUE(observed.outlet.entered.empty());
  EXPECT_TRUE(observed.outlet.transfers.empty());
}

class Chained : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Observer, Chained, testing::Range(4, 8));

/// A plugin behind ours is told what it asks for and nothing else, and its events are parents of its own.
TEST_P(Chained, IsToldAllThatItAsksFor) {
  const auto wanted = plugin::collectiveEvent | plugin::proxyStepEvent;
  const FakePlugin fake("profiler", GetParam(), {{"FALCON_FAKE_PROFILER_MASK", std::to_string(wanted)}});
  auto& log = fake.its<FakeProfilerLog>("fakeProfilerLog");
  Observed observed(0, fake.path());
  {
    ToldCommunicator told(observed.calls, facts, observed.mask);
    EXPECT_EQ(observed.mask, static_cast<int>(wanted));
    const ToldCommunicator::Transfer sends{.channel = 1, .peer = 3, .steps = 1};
    told.allReduce(100, 2, &sends);
    told.send(5, 1);
  }
  EXPECT_EQ(log.inits, 1);
  EXPECT_EQ(log.finalizes, 1);
  EXPECT_EQ(log.open, 0);
  const auto lines = log.take();
  if (GetParam() == 4) {
    EXPECT_EQ(lines[0], "group 1");
    EXPECT_EQ(lines[1], "collective 2 in 1: AllReduce 0 of 100 ncclFloat32 by RING on 2");
    EXPECT_THAT(lines, Contains("op 3 in 2: channel 1 to 3"));
    EXPECT_THAT(lines, Contains("step 4 in 3: 0"));
  } else {
    EXPECT_EQ(lines[0], "group-api 1: depth 1");
    EXPECT_THAT(lines, Contains("collective 4 in 2: AllReduce 0 of 100 ncclFloat32 by RING on 2"));
    EXPECT_THAT(lines, Contains("op 5 in 4: channel 1 to 3"));
    EXPECT_THAT(lines, Contains("step 6 in 5: 0"));
  }
  EXPECT_THAT(lines, Not(Contains(StartsWith("channel"))));
  EXPECT_THAT(lines, Contains(HasSubstr(": Send of 5 with 1 on 1"))) << "its steps might be asked for";
  EXPECT_TRUE(observed.outlet.entered.size() == 2) << "ours sees what is told in any case";
}

TEST(Observer, AChainedPluginIsNotToldWhatOnlyOursWants) {
  const FakePlugin fake("profiler", 7, {{"FALCON_FAKE_PROFILER_MASK", std::to_string(plugin::collectiveEvent)}});
  Observed observed(callEvents | channelEvents, fake.path());
  ToldCommunicator told(observed.calls, facts, observed.mask);
  const ToldCommunicator::Transfer sends{.steps = 1};
  told.allReduce(100, 1, &sends);
  told.send(5, 1);
  EXPECT_EQ(observed.outlet.left_.size(), 2U);
  EXPECT_EQ(observed.outlet.transfers.size(), 1U);
  EXPECT_EQ(observed.outlet.works.size(), 1U);
  for (const std::string& line : fake.its<FakeProfilerLog>("fakeProfilerLog").take())
    for (const char* kind : {"message", "channel", "op", "step", "phase"}) EXPECT_FALSE(line.starts_with(kind)) << line;
}

TEST(Observer, AnUnsoundChainedPluginLeavesOursAtWork) {
  const FakePlugin fake("profiler", 6, {{"FALCON_FAKE_PLUGIN_FAULT", "init"}});
  Observed observed(callEvents, fake.path());
  ToldCommunicator told(observed.calls, facts, observed.mask);
  ASSERT_EQ(told.result, plugin::success);
  told.allReduce(100, 1);
  EXPECT_EQ(observed.outlet.left_.size(), 1U);
}

/// More events than there is room for: some are not observed, none harms.
TEST(Observer, HasRoomForSoManyOpenEvents) {
  Observed observed(callEvents | channelEvents);
  void* context = nullptr;
  ASSERT_EQ(observed.observer.init(facts, &context, &observed.mask), plugin::success);
  std::vector<void*> open;
  for (int i = 0; i < 20000; ++i) {
    void* handle = nullptr;
    Event event{.type = plugin::groupEvent};
    ASSERT_EQ(observed.observer.start(context, &handle, event), plugin::success);
    if (handle) open.push_back(handle);
  }
  EXPECT_GT(observed.observer.missed(), 0U);
  EXPECT_EQ(open.size(), 8192U);
  for (void* handle : open) observed.observer.stop(handle);
  observed.observer.finalize(context);
}

}  // namespace
}  // namespace falcon::profiler
