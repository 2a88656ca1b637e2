#include "collectives/member_info.h"

#include <gtest/gtest.h>

namespace falcon::collectives {
namespace {

MemberOffer sample() {
  MemberOffer offer;
  offer.info.peer = {*SocketAddress::parse("10.1.0.2:4000"), "node0", 77, "doorbell", 3};
  offer.info.host = "host";
  offer.info.pid = 1234;
  offer.info.device = 1;
  offer.info.extra = std::string("a\0b", 3);
  offer.chunkBytes = 1 << 17;
  offer.fewestChannels = 2;
  offer.mostChannels = 4;
  offer.choseChannels = true;
  offer.cores = {8, 16};
  offer.preferred.of[2] = 5;
  offer.tuning = "AllReduce node 2 0 - flat";
  offer.checksCalls = true;
  return offer;
}

TEST(MemberOffer, ComesBackAsItWas) {
  MemberOffer offer = sample();
  offer.quota = {2.5, 99};
  const auto back = MemberOffer::decode(offer.encode());
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->encode(), offer.encode());
  EXPECT_EQ(back->info.peer.address.text(), "10.1.0.2:4000");
  EXPECT_EQ(back->info.peer.node, "node0");
  EXPECT_EQ(back->info.peer.jobRank, 3);
  EXPECT_EQ(back->info.extra.size(), 3u);
  EXPECT_EQ(back->mostChannels, 4);
  EXPECT_TRUE(back->choseChannels);
  EXPECT_EQ(back->cores, (CoreSet{8, 16}));
  EXPECT_EQ(back->quota, (CpuQuota{2.5, 99}));
  EXPECT_EQ(back->preferred, sample().preferred);
  EXPECT_EQ(back->tuning, sample().tuning);
  EXPECT_TRUE(back->checksCalls);
}

TEST(MemberOffer, RefusesEveryTruncationAndNonsense) {
  const std::string bytes = sample().encode();
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(MemberOffer::decode(std::string_view(bytes).substr(0, length))) << length;
  EXPECT_FALSE(MemberOffer::decode(bytes + "x"));
  MemberOffer none = sample();
  none.mostChannels = 0;
  EXPECT_FALSE(MemberOffer::decode(none.encode()));
}

TEST(NodesOf, NumbersNodesInOrderOfAppearance) {
  std::vector<MemberInfo> members(5);
  const char* names[] = {"b", "a", "b", "c", "a"};
  for (size_t i = 0; i < members.size(); ++i) members[i].peer.node = names[i];
  EXPECT_EQ(nodesOf(members), (std::vector<int>{0, 1, 0, 2, 1}));
}

// 8 ranks on one node, with the cores that each may use.
double ranksPerCore(std::uint32_t count, std::uint32_t apart, const char* lastNode = "node0") {
  std::vector<MemberOffer> offers(8, sample());
  for (std::uint32_t rank = 0; rank < 8; ++rank) offers[rank].cores = {count, rank * apart};
  for (std::size_t rank = 4; rank < 8; ++rank) offers[rank].info.peer.node = lastNode;
  return mostRanksPerCore(offers);
}

TEST(MostRanksPerCore, CountsThoseThatShareCoresOfOneNode) {
  EXPECT_DOUBLE_EQ(ranksPerCore(2, 0), 4);
  EXPECT_DOUBLE_EQ(ranksPerCore(3, 0), 8.0 / 3);
  EXPECT_DOUBLE_EQ(ranksPerCore(16, 0), 0.5);
  EXPECT_DOUBLE_EQ(ranksPerCore(1, 1), 1) << "each has a core of its own";
  EXPECT_DOUBLE_EQ(ranksPerCore(2, 0, "node1"), 2) << "four on each node";
}

TEST(MostRanksPerCore, CountsThoseThatShareAQuota) {
  std::vector<MemberOffer> offers(4, sample());
  for (MemberOffer& offer : offers) offer.cores = {64, 0};
  EXPECT_DOUBLE_EQ(mostRanksPerCore(offers), 4.0 / 64);
  for (MemberOffer& offer : offers) offer.quota = {2, 77};
  EXPECT_DOUBLE_EQ(mostRanksPerCore(offers), 2) << "a container of 2 cores on a machine of 64";
  for (std::size_t rank = 0; rank < 4; ++rank) offers[rank].quota = {1, rank};
  EXPECT_DOUBLE_EQ(mostRanksPerCore(offers), 1) << "each has its own";
}

}  // namespace
}  // namespace falcon::collectives
