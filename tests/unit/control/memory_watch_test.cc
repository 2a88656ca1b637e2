// When the controller hears anew what memory a process has left, and what the planner makes of it.
#include "control/memory_watch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "control/memory_facts.h"
#include "unit/control/a_member.h"

namespace falcon::control {
namespace {

TEST(MemoryWatch, SaysWhatHasChangedByASixteenth) {
  std::vector<MemoryPool> pools;
  int reads = 0;
  MemoryWatch watch([&] { return ++reads, pools; });
  EXPECT_FALSE(watch.look(0s)) << "nothing is known";
  pools = {{"machine", 1600}, {"cgroup", 320}};
  EXPECT_FALSE(watch.look(1s)) << "read a moment ago";
  EXPECT_EQ(reads, 1);
  auto news = watch.look(5s);
  ASSERT_TRUE(news);
  ASSERT_EQ(news->parts.size(), 2u);
  EXPECT_EQ(news->parts[1].pool, "cgroup");
  EXPECT_EQ(news->parts[1].bytesLeft, 320u);
  pools[0].bytesLeft = 1500;
  EXPECT_FALSE(watch.look(10s));
  pools[1].bytesLeft = 290;
  news = watch.look(15s);
  ASSERT_TRUE(news);
  EXPECT_EQ(news->parts[0].bytesLeft, 1500u);
  ASSERT_TRUE(watch.said());
  EXPECT_EQ(watch.said()->parts[1].bytesLeft, 290u);
  pools[1].name = "another cgroup";
  EXPECT_TRUE(watch.look(20s));
  pools.clear();
  EXPECT_TRUE(watch.look(25s)) << "what was said holds no longer";
  EXPECT_FALSE(watch.look(30s));
}

using MemberMemory = falcon::test::AMember;

TEST_F(MemberMemory, IsToldWhereRolesCanBeExchangedAlsoToALaterController) {
  PartKnown layout;
  member.partKnown(layout);
  member.tick();
  EXPECT_TRUE(bus.take<MemoryKnown>().empty()) << "nobody plans with it";
  layout.role = 0;
  member.partKnown(layout);
  member.tick();
  const auto told = bus.take<MemoryKnown>();
  ASSERT_EQ(told.size(), 1u);
  ASSERT_FALSE(told[0].parts.empty());
  member.tick();
  EXPECT_TRUE(bus.take<MemoryKnown>().empty());
  member.newController();
  const auto again = bus.take<MemoryKnown>();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].parts.at(0).bytesLeft, told[0].parts[0].bytesLeft);
}

/// Ranks 0 and 1 on one machine, where rank 1 is in a cgroup of its own; rank 2 alone; nothing is known of rank 3's.
JobView jobWithMemory() {
  JobView job;
  for (Rank rank = 0; rank < 4; ++rank) {
    const ProcessId process = 10 + static_cast<ProcessId>(rank);
    job.handle(process, Introduce{rank, "host", "", "", 1});
    PartKnown layout{4, 1, 1, rank, 0, 0, 16, {}};
    layout.role = 3 - rank;
    layout.stateBytes = 1000 * (static_cast<std::uint64_t>(rank) + 1);
    job.handle(process, layout);
  }
  job.handle(10, MemoryKnown{{{"machine", 8000}}});
  job.handle(11, MemoryKnown{{{"machine", 8000}, {"cgroup", 3000}}});
  job.handle(12, MemoryKnown{{{"another", 5000}}});
  return job;
}

TEST(MemoryFacts, ShareWhatIsLeftAndGoWithTheRole) {
  rebalance::JobFacts facts;
  facts.roles = {3, 2, 1, 0};
  addMemory(jobWithMemory(), facts);
  ASSERT_EQ(facts.memoryLeft.size(), 4u);
  EXPECT_EQ(facts.memoryLeft[0], 4000);
  EXPECT_EQ(facts.memoryLeft[1], 3000) << "its cgroup has less than its part of the machine";
  EXPECT_EQ(facts.memoryLeft[2], 5000);
  EXPECT_TRUE(std::isinf(facts.memoryLeft[3]));
  ASSERT_EQ(facts.memoryOfRole.size(), 4u);
  for (int role = 0; role < 4; ++role)
    EXPECT_EQ(facts.memoryOfRole[static_cast<std::size_t>(role)], 1000 * (4 - role) + memoryOfNewGroups);
}

TEST(MemoryFacts, AreNoneWhereNothingCanBeExchangedOrIsKnown) {
  rebalance::JobFacts facts;
  addMemory(jobWithMemory(), facts);
  EXPECT_TRUE(facts.memoryLeft.empty());
  facts.roles = {3, 2, 1, 0};
  JobView job = jobWithMemory();
  for (auto& [process, member] : job.members()) member.memory = {};
  addMemory(job, facts);
  EXPECT_TRUE(facts.memoryLeft.empty());
  EXPECT_TRUE(facts.memoryOfRole.empty());
}

}  // namespace
}  // namespace falcon::control
