// A member whose controller is gone while it waits for a decision.
#include <gtest/gtest.h>

#include <future>

#include "control/succession.h"
#include "unit/control/a_member.h"
#include "unit/control/idle_host.h"

namespace falcon::control {
namespace {

constexpr ProcessId first = 7, next = 1;  ///< controllers; the bus knows the second
constexpr CommunicatorId id = 5;
constexpr PlannedRank self{id, 0};
constexpr std::uint64_t splitAgreement = 3, ringAgreement = 4;

struct MemberSuccession : falcon::test::AMember {
  MemberSuccession() {
    KnownCommunicator known;
    known.membership = known.host = &host;
    communicators.add(known);
    RegisteredPart layout;
    layout.dataParallelSize = 2;
    layout.microBatches = 8;
    plans.setPart(self, layout);
    member.partKnown({2, 1, 1, 0, 0, 0, 8, {}});
    member.formed({id, true, {0, 1, 2}, {}, {0, 1, 2}, {0, 1, 2}});
    member.handle(first, Propose{splitAgreement, AgreementKind::microBatches, 0, 0, {6, 2}, {}});
    member.handle(first, Propose{ringAgreement, AgreementKind::ring, id, 0, {0, 2, 1}, {7, 8, 9}});
    for (const Vote& vote : bus.take<Vote>()) EXPECT_TRUE(vote.yes) << vote.agreement;
    bus.take<PartKnown>();
    bus.take<CommunicatorFormed>();
    bus.take<Recall>();
  }
  std::vector<Rank> ringOfTheNextCollective() {
    const auto order = host.rings.start(0);
    return order ? *order : std::vector<Rank>();
  }

  falcon::test::IdleHost host{id};
};

TEST_F(MemberSuccession, TellsTheNextControllerWhatItHasHeard) {
  member.handle(first, Decide{splitAgreement, true});
  member.newController();
  const auto recalls = bus.take<Recall>();
  ASSERT_EQ(recalls.size(), 1u);
  ASSERT_EQ(recalls[0].undecided.size(), 1u);
  EXPECT_EQ(recalls[0].undecided[0].agreement, ringAgreement);
  EXPECT_EQ(recalls[0].undecided[0].by, first);
  EXPECT_EQ(recalls[0].undecided[0].members, (std::vector<std::uint64_t>{7, 8, 9}));
  ASSERT_EQ(recalls[0].decisions.size(), 1u);
  EXPECT_EQ(recalls[0].decisions[0].agreement, splitAgreement);
  EXPECT_TRUE(recalls[0].decisions[0].commit);
}

TEST_F(MemberSuccession, ObeysTheDecisionOfTheNext) {
  for (const bool commit : {false, true}) {
    if (commit) {
      member.handle(first, Propose{splitAgreement + 10, AgreementKind::microBatches, 0, 1, {6, 2}, {}});
      member.handle(first, Propose{ringAgreement + 10, AgreementKind::ring, id, 1, {0, 2, 1}, {7, 8, 9}});
    }
    const std::uint64_t later = commit ? 10 : 0;
    member.newController();
    bus.take<PartKnown>();
    bus.take<CommunicatorFormed>();
    auto waiting = std::async(std::launch::async, [&] { return plans.begin(self, commit ? 1 : 0); });
    EXPECT_EQ(waiting.wait_for(20ms), std::future_status::timeout);
    member.handle(next, Decide{splitAgreement + later, commit});
    member.handle(next, Decide{ringAgreement + later, commit});
    const auto plan = waiting.get();
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_EQ(plan->microBatches, commit ? 6 : 4);
    const auto ring = host.rings.start(commit ? 1 : 0);
    ASSERT_NE(ring, nullptr);
    EXPECT_EQ(*ring, commit ? std::vector<Rank>({0, 2, 1}) : std::vector<Rank>({0, 1, 2}));
    // What holds now it is told, too.
    const auto layouts = bus.take<PartKnown>();
    const auto rings = bus.take<CommunicatorFormed>();
    ASSERT_EQ(layouts.size(), commit ? 1u : 0u);
    ASSERT_EQ(rings.size(), commit ? 1u : 0u);
    if (!commit) continue;
    EXPECT_EQ(layouts[0].split, (std::vector<std::int32_t>{6, 2}));
    EXPECT_EQ(rings[0].ring, (std::vector<Rank>{0, 2, 1}));
  }
}

TEST_F(MemberSuccession, GoesOnWithTheOldPlanWhereNobodyDecides) {
  member.newController();
  auto waiting = std::async(std::launch::async, [&] { return plans.begin(self, 0); });
  clock.advance(Succession::patience + 29s);
  member.tick();
  EXPECT_EQ(waiting.wait_for(20ms), std::future_status::timeout);
  clock.advance(1s);
  member.tick();
  const auto plan = waiting.get();
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->microBatches, 4);
  EXPECT_EQ(ringOfTheNextCollective(), (std::vector<Rank>{0, 1, 2}));
}

TEST_F(MemberSuccession, HearsTheDecisionAlsoWhenFalconIsOff) {
  member.newController();
  member.handle(next, SwitchOff{});
  ASSERT_TRUE(member.isOff());
  EXPECT_EQ(host.rings.start(0), nullptr) << "the decision is another one's";
  member.handle(next, Decide{splitAgreement, true});
  member.handle(next, Decide{ringAgreement, true});
  EXPECT_EQ(plans.begin(self, 0)->microBatches, 6);
  EXPECT_EQ(ringOfTheNextCollective(), (std::vector<Rank>{0, 2, 1}));
}

}  // namespace
}  // namespace falcon::control
