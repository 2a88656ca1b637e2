// One link's test and waves of them over links whose rate is known.
#include "validate/link_test.h"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/validate/simulated_ports.h"
#include "validate/link_messages.h"
#include "validate/wave.h"

namespace falcon::validate {
namespace {

using test::LinkModel;
using test::SimulatedWaiter;
using test::SimulatedWorld;
using transport::Lane;

constexpr CommunicatorId communicator = 7;

/// The simulated machine has cores enough.
LinkTestSettings calm(LinkTestSettings settings) {
  settings.runQueueWait = [] { return Nanoseconds(0); };
  return settings;
}

WaveLink linkBetween(Rank from, Rank to) {
  return {communicator, {100 + from, 100 + to}, from, to};
}

struct LinkTest : testing::Test {
  ManualClock clock;
  SimulatedWaiter waiter{clock};
  std::uint64_t run = 1;

  /// All ranks in one process.
  std::vector<LinkMeasurement> runAll(SimulatedWorld& world, int size, std::vector<WaveLink> links,
                                      const LinkTestSettings& settings = calm(testSettings()), Nanoseconds limit = 10s,
                                      const std::function<bool()>& stop = {}) {
    std::vector<LocalCommunicator> locals;
    for (Rank rank = 0; rank < size; ++rank) locals.push_back({communicator, rank, &world.ports(rank)});
    return runWave({run++, settings.lane, std::move(links)}, locals, settings, waiter, clock, limit, stop);
  }
  LinkMeasurement runOne(SimulatedWorld& world, const LinkTestSettings& settings = calm(testSettings())) {
    const auto measurements = runAll(world, 2, {linkBetween(0, 1)}, settings);
    EXPECT_EQ(measurements.size(), 1u);
    return measurements.empty() ? LinkMeasurement{} : measurements[0];
  }
};

struct Rate : LinkTest, testing::WithParamInterface<double> {};

// The slowest do not get past the warm-up in time: a third then.
TEST_P(Rate, IsFoundWithinATenthWhateverTheBurst) {
  for (const double burst : {0.0, 1600.0, 32768.0}) {
    SimulatedWorld world(2, clock);
    world.link(0, 1) = {.bytesPerSecond = GetParam(), .burst = burst};
    const auto measurement = runOne(world);
    EXPECT_EQ(measurement.status, LinkStatus::measured);
    EXPECT_EQ(measurement.link, (Link{100, 101}));
    EXPECT_EQ(measurement.communicator, communicator);
    EXPECT_NEAR(measurement.bytesPerSecond() / GetParam(), 1, GetParam() < 3e5 ? 0.34 : 0.1) << "burst " << burst;
  }
}
INSTANTIATE_TEST_SUITE_P(FromModemToMemory, Rate, testing::Values(5e4, 1e5, 3e5, 1e6, 1e7, 1e8, 1e9, 4e9));

TEST_F(LinkTest, ADeepBurstDoesNotHideASlowLink) {
  SimulatedWorld world(2, clock);
  world.link(0, 1) = {.bytesPerSecond = 2e6, .burst = 1 << 20};
  EXPECT_LT(runOne(world).bytesPerSecond(), 3e6);
}

TEST_F(LinkTest, TheOtherDirectionDoesNotMatter) {
  SimulatedWorld world(2, clock);
  world.link(1, 0) = {.bytesPerSecond = 1e6};
  EXPECT_GT(runOne(world).bytesPerSecond(), 9e8);
}

TEST_F(LinkTest, TimeWithoutACoreIsKnown) {
  static double share;
  static const ManualClock* time;
  time = &clock;
  for (share = 0; share < 0.6; share += 0.1) {
    SimulatedWorld world(2, clock);
    world.link(0, 1).bytesPerSecond = 1e7;
    auto settings = testSettings();
    settings.runQueueWait = [] {
      return Nanoseconds(
          static_cast<std::int64_t>(share / 2 * static_cast<double>(time->now().count())));  // at either end
    };
    const auto measurement = runOne(world, settings);
    EXPECT_NEAR(measurement.waited / measurement.seconds, share, 0.05);
    EXPECT_NEAR(measurement.bytesPerSecond() / 1e7, 1, 0.1);
    if (std::abs(share - 0.25) > 0.04) {
      EXPECT_EQ(measurement.disturbed(), share > 0.25);
    }
  }
}

// Meanwhile bytes gather, and are taken all at once.
TEST_F(LinkTest, AReceiverWithoutACoreForAMomentNeverMakesALinkLookFaster) {
  constexpr double rate = 19e6;
  const LinkTestSettings settings = calm(briefSettings());
  for (Nanoseconds offset = 0ns; offset < 20ms; offset += 1ms) {
    SimulatedWorld world(2, clock);
    world.link(0, 1) = {.bytesPerSecond = rate, .burst = 16384};
    auto sender = startLinkTestSender(world.ports(0), linkBetween(0, 1), run, settings, clock);
    auto receiver = startLinkTestReceiver(world.ports(1), linkBetween(0, 1), run++, settings, clock);
    ASSERT_TRUE(sender && receiver);
    const Nanoseconds start = clock.now();
    while (!(*receiver)->finished()) {
      (*sender)->progress();
      if ((clock.now() - start + offset) % 20ms >= 5ms) (*receiver)->progress();
      clock.advance(10us);
    }
    const auto measured = (*receiver)->measurement();
    ASSERT_TRUE(measured);
    EXPECT_EQ(measured->status, LinkStatus::measured);
    EXPECT_NEAR(measured->bytesPerSecond() / rate, 0.85, 0.18) << seconds(offset);
  }
}

TEST_F(LinkTest, LatencyIsARoundTrip) {
  SimulatedWorld world(2, clock);
  world.link(0, 1).latency = 300us;
  world.link(1, 0).latency = 200us;
  EXPECT_NEAR(runOne(world).latency, 500e-6, 60e-6);
}

TEST_F(LinkTest, EndsWithinItsLimits) {
  for (const double rate : {1e3, 1e4, 1e5, 1e9}) {
    SimulatedWorld world(2, clock);
    world.link(0, 1).bytesPerSecond = rate;
    const auto start = clock.now();
    runOne(world);
    EXPECT_LT(clock.now() - start, calm(testSettings()).answerLimit + calm(testSettings()).limit + 200ms) << rate;
  }
}

TEST_F(LinkTest, ADeadLinkIsATimeoutAndNotSlow) {
  for (const bool forward : {true, false}) {
    SimulatedWorld world(2, clock);
    (forward ? world.link(0, 1) : world.link(1, 0)).dead = true;
    const auto measurement = runOne(world);
    EXPECT_EQ(measurement.status, LinkStatus::timeout);
    EXPECT_EQ(measurement.bytes, 0u);
  }
}

TEST_F(LinkTest, AMissingSenderIsATimeout) {
  SimulatedWorld world(2, clock);
  const LocalCommunicator local{communicator, 1, &world.ports(1)};
  const auto measurements =
      runWave({1, Lane::test, {linkBetween(0, 1)}}, {&local, 1}, calm(testSettings()), waiter, clock, 10s);
  ASSERT_EQ(measurements.size(), 1u);
  EXPECT_EQ(measurements[0].status, LinkStatus::timeout);
}

TEST_F(LinkTest, AMissingReceiverEndsTheSenderToo) {
  SimulatedWorld world(2, clock);
  const LocalCommunicator local{communicator, 0, &world.ports(0)};
  const auto start = clock.now();
  EXPECT_TRUE(
      runWave({1, Lane::test, {linkBetween(0, 1)}}, {&local, 1}, calm(testSettings()), waiter, clock, 60s).empty());
  EXPECT_LT(clock.now() - start, 5s);
}

TEST_F(LinkTest, ABrokenConnectionIsAFailure) {
  SimulatedWorld world(2, clock);
  world.link(0, 1).broken = true;
  EXPECT_EQ(runOne(world).status, LinkStatus::failed);
}

TEST_F(LinkTest, StoppedFromOutside) {
  SimulatedWorld world(2, clock);
  world.link(0, 1).dead = true;
  const auto start = clock.now();
  const auto measurements =
      runAll(world, 2, {linkBetween(0, 1)}, calm(testSettings()), 10s, [&] { return clock.now() - start > 50ms; });
  ASSERT_EQ(measurements.size(), 1u);
  EXPECT_EQ(measurements[0].status, LinkStatus::stopped);
  EXPECT_LT(clock.now() - start, 60ms);
}

TEST_F(LinkTest, WhatAnInterruptedTestLeftBehindIsNotCounted) {
  SimulatedWorld world(2, clock);
  world.link(0, 1).bytesPerSecond = 1e6;
  const auto start = clock.now();
  runAll(world, 2, {linkBetween(0, 1)}, calm(testSettings()), 10s, [&] { return clock.now() - start > 250ms; });
  for (int again = 0; again < 3; ++again) {
    const auto measurement = runOne(world);
    EXPECT_EQ(measurement.status, LinkStatus::measured);
    EXPECT_NEAR(measurement.bytesPerSecond() / 1e6, 1, 0.1);
  }
}

TEST_F(LinkTest, NonsenseInAConnectionIsSkipped) {
  SimulatedWorld world(2, clock);
  for (const auto& [from, to, channel] : {std::tuple(0, 1, dataChannel), std::tuple(1, 0, questionChannel)}) {
    auto& connection = world.connection(from, to, channel, Lane::test);
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{3}, std::size_t{64}, std::size_t{128 << 10}}) {
      const auto chunk = *connection.acquire();
      std::fill(chunk.begin(), chunk.end(), std::byte{0x5a});
      connection.commit(bytes);
    }
  }
  EXPECT_EQ(runOne(world).status, LinkStatus::measured);
}

TEST_F(LinkTest, ASenderNeverSendsMoreThanItsOwnSettingsAllow) {
  SimulatedWorld world(2, clock);
  auto& questions = world.connection(1, 0, questionChannel, Lane::test);
  Question question{.round = 1, .run = 1, .bytes = std::uint64_t{1} << 60, .pieceBytes = 0xffffffff};
  writeMessage(question, *questions.acquire());
  questions.commit(sizeof question);
  auto sender = startLinkTestSender(world.ports(0), linkBetween(0, 1), 1, calm(testSettings()), clock);
  ASSERT_TRUE(sender);
  auto& data = world.connection(0, 1, dataChannel, Lane::test);
  while (!(*sender)->finished()) {
    (*sender)->progress();
    while (*data.ready()) data.release();
    clock.advance(100us);
  }
  EXPECT_EQ(data.carried, calm(testSettings()).mostBytes);
}

TEST_F(LinkTest, AProbeIsSmallAndUsesItsOwnLane) {
  SimulatedWorld world(2, clock);
  world.link(0, 1).bytesPerSecond = 1e9;
  EXPECT_NEAR(runOne(world, calm(probeSettings())).bytesPerSecond() / 1e9, 1, 0.2);
  EXPECT_LE(world.connection(0, 1, dataChannel, Lane::probe).carried, 640u << 10);
  EXPECT_EQ(world.connection(0, 1, dataChannel, Lane::test).carried, 0u);
}

TEST_F(LinkTest, TheSmallestChunksWork) {
  SimulatedWorld world(2, clock, 512);
  world.link(0, 1).bytesPerSecond = 1e7;
  world.link(0, 1).latency = 0ns;
  const auto measurement = runOne(world);
  EXPECT_EQ(measurement.status, LinkStatus::measured);
  EXPECT_GT(measurement.bytesPerSecond(), 1e6);
}

TEST_F(LinkTest, AWaveMeasuresEveryLinkOfBothDirectionsByItself) {
  SimulatedWorld world(6, clock);
  std::vector<WaveLink> links;
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0), std::pair(2, 3), std::pair(5, 4)})
    links.push_back(linkBetween(from, to));
  world.link(2, 3).bytesPerSecond = 5e6;
  std::map<Link, double> rates;
  for (const auto& measurement : runAll(world, 6, links)) rates[measurement.link] = measurement.bytesPerSecond();
  ASSERT_EQ(rates.size(), links.size());
  for (const auto& [link, rate] : rates) {
    if (link == Link{102, 103})
      EXPECT_NEAR(rate / 5e6, 1, 0.1);
    else
      EXPECT_GT(rate, 5e8);
  }
}

TEST_F(LinkTest, AProcessThatHasNoPartReturnsAtOnce) {
  SimulatedWorld world(3, clock);
  const LocalCommunicator locals[] = {{communicator, 2, &world.ports(2)}, {communicator + 1, 0, &world.ports(0)}};
  const auto start = clock.now();
  EXPECT_TRUE(runWave({1, Lane::test, {linkBetween(0, 1)}}, locals, calm(testSettings()), waiter, clock, 10s).empty());
  EXPECT_EQ(clock.now(), start);
}

}  // namespace
}  // namespace falcon::validate
