#include "control/messages.h"

#include <gtest/gtest.h>

namespace falcon::control {
namespace {

TEST(Messages, ComeBackAsTheyWentOut) {
  Samples samples;
  samples.samples.push_back({.index = 7,
                             .seconds = 0.5,
                             .outside = 0.25,
                             .microBatches = 3,
                             .disturbed = true,
                             .communicators = {{42, 0.125, 9}}});
  const auto back = decode(encode(samples));
  ASSERT_TRUE(back.has_value());
  const auto& sample = std::get<Samples>(*back).samples.at(0);
  EXPECT_EQ(sample.index, 7);
  EXPECT_EQ(sample.outside, 0.25);
  EXPECT_TRUE(sample.disturbed);
  EXPECT_EQ(sample.communicators.at(0).id, 42u);
  EXPECT_EQ(sample.communicators.at(0).calls, 9u);

  const Propose propose{5, AgreementKind::ring, 77, 123, {2, 0, 1}, {8, 9}};
  const auto proposed = decode(encode(propose));
  ASSERT_TRUE(proposed.has_value());
  EXPECT_EQ(std::get<Propose>(*proposed).values, propose.values);
  EXPECT_EQ(std::get<Propose>(*proposed).from, 123u);
  EXPECT_EQ(std::get<Propose>(*proposed).members, propose.members);
}

TEST(Messages, TellALaterControllerWhatWasDecided) {
  const Message recall =
      Recall{{{5, AgreementKind::microBatches, 3, {}}, {6, AgreementKind::ring, 3, {1, 2}}}, {{4, true}}};
  EXPECT_FALSE(isOrder(recall));
  const auto back = decode(encode(recall));
  ASSERT_TRUE(back.has_value());
  const auto& recalled = std::get<Recall>(*back);
  ASSERT_EQ(recalled.undecided.size(), 2u);
  EXPECT_EQ(recalled.undecided[0].kind, AgreementKind::microBatches);
  EXPECT_EQ(recalled.undecided[1].by, 3u);
  EXPECT_EQ(recalled.undecided[1].members, (std::vector<std::uint64_t>{1, 2}));
  ASSERT_EQ(recalled.decisions.size(), 1u);
  EXPECT_EQ(recalled.decisions[0].agreement, 4u);
  EXPECT_TRUE(recalled.decisions[0].commit);
}

TEST(Messages, TellALaterControllerWhatIsInForce) {
  const CommunicatorFormed formed{3, true, {4, 5, 6}, {"a", "b", "c"}, {0, 2, 1}, {0, 1, 2}};
  const auto ring = decode(encode(formed));
  ASSERT_TRUE(ring.has_value());
  EXPECT_EQ(std::get<CommunicatorFormed>(*ring).ring, formed.ring);
  EXPECT_EQ(std::get<CommunicatorFormed>(*ring).firstRing, formed.firstRing);
  const auto split = decode(encode(PartKnown{2, 1, 1, 1, 0, 0, 8, {5, 3}, 4, 2, 6, true, 3}));
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(std::get<PartKnown>(*split).multiple, 4);
  EXPECT_EQ(std::get<PartKnown>(*split).leastMicroBatches, 2);
  EXPECT_EQ(std::get<PartKnown>(*split).mostMicroBatches, 6);
  EXPECT_TRUE(std::get<PartKnown>(*split).evenOnly);
  EXPECT_EQ(std::get<PartKnown>(*split).rail, 3);
  EXPECT_EQ(std::get<PartKnown>(*split).split, (std::vector<std::int32_t>{5, 3}));
  const auto traffic = decode(encode(Traffic{9, true, {1, 2}}));
  ASSERT_TRUE(traffic.has_value());
  EXPECT_TRUE(std::get<Traffic>(*traffic).collectives);
  EXPECT_EQ(std::get<Traffic>(*traffic).sendsTo, (std::vector<Rank>{1, 2}));
}

TEST(Messages, TellWhereAProcessDrains) {
  const auto back = decode(encode(DrainState{3, 5, true, false, {{7, 0, 2, 9}}, {{7, 0}, {8, 1}}, true}));
  ASSERT_TRUE(back.has_value());
  const auto& state = std::get<DrainState>(*back);
  EXPECT_EQ(state.version, 5u);
  EXPECT_TRUE(state.below);
  EXPECT_FALSE(state.held);
  EXPECT_TRUE(state.working);
  EXPECT_EQ(state.entered.at(0).to, 2);
  EXPECT_EQ(state.entered.at(0).count, 9u);
  EXPECT_EQ(state.parts.at(1).communicator, 8u);
  const auto targets = decode(encode(DrainTargets{3, 6, {{7, -1, -1, 4}}}));
  ASSERT_TRUE(targets.has_value());
  EXPECT_EQ(std::get<DrainTargets>(*targets).targets.at(0).from, -1);
}

TEST(Messages, EveryCutIsRefused) {
  CommunicatorFormed formed;
  formed.id = 1;
  formed.jobRanks = {0, 1, 2, 3};
  formed.nodes = {"a", "a", "b", "b"};
  formed.ring = {0, 1, 2, 3};
  const std::string whole = encode(formed);
  ASSERT_TRUE(decode(whole).has_value());
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(decode(whole.substr(0, length)).has_value()) << length;
  EXPECT_FALSE(decode(whole + "x").has_value());
}

TEST(Messages, AHostileCountAllocatesNothing) {
  std::string bytes = encode(Samples{});
  for (size_t i = 1; i < bytes.size(); ++i) bytes[i] = '\xff';
  EXPECT_FALSE(decode(bytes).has_value());
}

TEST(Messages, OrdersAreThoseOfTheController) {
  EXPECT_FALSE(isOrder(Introduce{}));
  EXPECT_FALSE(isOrder(RequestOff{}));
  EXPECT_FALSE(isOrder(AskSuspend{}));
  EXPECT_FALSE(isOrder(Leaving{}));
  EXPECT_FALSE(isOrder(DrainState{}));
  EXPECT_TRUE(isOrder(DrainTargets{}));
  EXPECT_TRUE(isOrder(SetProfiling{}));
  EXPECT_TRUE(isOrder(SuspendAnswer{}));
  EXPECT_TRUE(isOrder(SwitchOff{}));
}

}  // namespace
}  // namespace falcon::control
