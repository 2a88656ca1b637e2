#include "diagnose/suspicion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "falcon_net_state.h"
#include "topology/layout.h"

namespace falcon::diagnose {
namespace {

using instrument::CommunicatorMembers;
using instrument::RankComparison;
using instrument::RankProfile;

/// Eight ranks in hybrid parallelism, one iteration of arithmetic: replicas are pipelines, their stages' gradients are
/// reduced over a ring. Times are those that a synchronous job would show: who comes last waits for nobody.
class ProfiledJob {
 public:
  explicit ProfiledJob(topology::Layout layout) : layout_(layout) {
    CommunicatorId id = 100;
    const auto add = [&](std::vector<Rank> members) {
      if (members.size() > 1) communicators_.push_back({id++, std::move(members)});
    };
    for (int p = 0; p < layout.pipelineSize; ++p) add(layout.dataGroup(layout.rankAt({0, p, 0})));
    dataGroups_ = communicators_.size();
    for (int d = 0; d < layout.dataSize; ++d) add(layout.pipelineGroup(layout.rankAt({d, 0, 0})));
  }

  std::map<Rank, double> compute;                 ///< factors of own time
  std::map<std::pair<Rank, Rank>, double> links;  ///< factors of the time to move a byte
  double everyone = 1;
  bool timing = true;  ///< per-channel timing
  std::map<Link, NetCondition> network;

  Suspicion judge(unsigned seed = 1) const {
    std::vector<RankComparison> ranks;
    ProfiledJob before(layout_);
    before.timing = timing;
    std::mt19937 random(seed);
    const auto healthy = before.profiles(random), now = profiles(random);
    for (Rank rank = 0; rank < layout_.size(); ++rank)
      ranks.push_back({rank, healthy[static_cast<size_t>(rank)], now[static_cast<size_t>(rank)]});
    return suspect({.ranks = ranks, .communicators = communicators_, .network = network});
  }
  CommunicatorId groupOf(Rank a, Rank b) const {
    for (const auto& each : communicators_)
      if (std::count(each.members.begin(), each.members.end(), a) &&
          std::count(each.members.begin(), each.members.end(), b))
        return each.communicator;
    return 0;
  }

 private:
  std::vector<RankProfile> profiles(std::mt19937& random) const {
    std::uniform_real_distribution<> jitter(0.97, 1.03);
    std::vector<RankProfile> all(static_cast<size_t>(layout_.size()));
    std::vector<double> arrival(all.size(), 0);
    for (size_t rank = 0; rank < all.size(); ++rank)
      all[rank].own = 0.2 * everyone * jitter(random) * factor(compute, static_cast<Rank>(rank));
    // Pipelines first (all stages of a replica end together), then the gradients.
    for (size_t pass = 0; pass < 2; ++pass) {
      for (size_t g = 0; g < communicators_.size(); ++g) {
        if ((g < dataGroups_) != (pass == 1)) continue;
        const auto& group = communicators_[g];
        double last = 0, transfer = 0;
        for (size_t i = 0; i < group.members.size(); ++i) {
          const Rank from = group.members[i], to = group.members[(i + 1) % group.members.size()];
          last =
              std::max(last, arrival[static_cast<size_t>(from)] + (pass == 0 ? all[static_cast<size_t>(from)].own : 0));
          // A slow rank copies slowly too.
          const double moving = 0.05 * everyone * jitter(random) * factor(links, {from, to}) *
                                std::max(factor(compute, from), factor(compute, to));
          transfer = std::max(transfer, moving);
          if (!timing) continue;
          const auto peer = static_cast<Rank>((i + 1) % group.members.size());
          all[static_cast<size_t>(from)].transfers.push_back({group.communicator, peer, 0, true, 1e6, moving, 0});
          all[static_cast<size_t>(to)].transfers.push_back(
              {group.communicator, static_cast<Rank>(i), 0, false, 1e6, moving, 0});
        }
        for (const Rank member : group.members) {
          auto& profile = all[static_cast<size_t>(member)];
          const double came = arrival[static_cast<size_t>(member)] + (pass == 0 ? profile.own : 0);
          profile.communicators.push_back({group.communicator, last + transfer - came});
          profile.inLibrary += last + transfer - came;
          arrival[static_cast<size_t>(member)] = last + transfer;
        }
      }
    }
    return all;
  }
  template <class Key>
  static double factor(const std::map<Key, double>& factors, Key key) {
    const auto found = factors.find(key);
    return found == factors.end() ? 1 : found->second;
  }

  topology::Layout layout_;
  std::vector<CommunicatorMembers> communicators_;
  size_t dataGroups_ = 0;
};

class Layouts : public testing::TestWithParam<topology::Layout> {};

TEST_P(Layouts, OfAHealthyJobHaveNoSuspect) {
  for (const bool timing : {true, false})
    for (unsigned seed = 0; seed < 200; ++seed) {
      ProfiledJob job(GetParam());
      job.timing = timing;
      const auto found = job.judge(seed);
      EXPECT_TRUE(found.empty()) << found.reason;
    }
}

TEST_P(Layouts, ThatAreSlowAlikeHaveNoSuspect) {
  for (const bool timing : {true, false}) {
    ProfiledJob job(GetParam());
    job.timing = timing;
    job.everyone = 1.8;
    const auto found = job.judge();
    EXPECT_TRUE(found.empty()) << found.reason;
  }
}

// What the network limits is no slower for it.
TEST(Suspicion, OfALinkStandsWhereAllRanksComputeLonger) {
  const double processors = 1.2;
  ProfiledJob job({4, 2, 1});
  job.everyone = processors;
  for (Rank from = 0; from < 8; ++from)
    for (Rank to = 0; to < 8; ++to) job.links[{from, to}] = 1 / processors;
  for (unsigned seed = 0; seed < 50; ++seed) EXPECT_TRUE(job.judge(seed).empty()) << job.judge(seed).reason;
  job.links[{2, 4}] = 1.4 / processors;
  const auto found = job.judge();
  ASSERT_EQ(found.groups.size(), 1U) << found.reason;
  EXPECT_EQ(found.groups[0].slowest, (Link{2, 4})) << found.reason;
  EXPECT_TRUE(found.ranks.empty()) << found.reason;
}

TEST_P(Layouts, SuspectTheSlowRankAndNotItsLinks) {
  for (const bool timing : {true, false})
    for (Rank slow = 0; slow < GetParam().size(); ++slow)
      for (const double factor : {1.5, 3.0}) {
        ProfiledJob job(GetParam());
        job.timing = timing;
        job.compute[slow] = factor;
        const auto found = job.judge();
        ASSERT_EQ(found.ranks.size(), 1u) << found.reason;
        EXPECT_EQ(found.ranks[0].rank, slow);
        EXPECT_NEAR(found.ranks[0].growth, factor, 0.2 * factor);
        EXPECT_TRUE(found.groups.empty()) << found.reason;
      }
}

TEST_P(Layouts, SuspectTheGroupOfASlowLink) {
  const auto layout = GetParam();
  for (Rank from = 0; from < layout.size(); ++from) {
    const auto data = layout.dataGroup(from), pipeline = layout.pipelineGroup(from);
    for (const auto& group : {data, pipeline}) {
      if (group.size() < 2) continue;
      const auto at = std::find(group.begin(), group.end(), from) - group.begin();
      const Rank to = group[static_cast<size_t>(at + 1) % group.size()];
      for (const bool timing : {true, false}) {
        ProfiledJob job(layout);
        job.timing = timing;
        job.links[{from, to}] = 4;
        const auto found = job.judge();
        EXPECT_TRUE(found.ranks.empty()) << found.reason;
        ASSERT_EQ(found.groups.size(), 1u) << found.reason;
        EXPECT_EQ(found.groups[0].communicator, job.groupOf(from, to));
        EXPECT_EQ(found.groups[0].slowest, timing ? (Link{from, to}) : Link{});
      }
    }
  }
}

TEST_P(Layouts, SuspectBothWhenARankAndAFarLinkAreSlow) {
  const auto layout = GetParam();
  if (layout.dataSize < 3) return;
  const auto group = layout.dataGroup(0);
  ProfiledJob job(layout);
  job.compute[group[2]] = 2;
  job.links[{group[0], group[1]}] = 5;
  const auto found = job.judge();
  ASSERT_EQ(found.ranks.size(), 1u) << found.reason;
  EXPECT_EQ(found.ranks[0].rank, group[2]);
  ASSERT_EQ(found.groups.size(), 1u) << found.reason;
  EXPECT_EQ(found.groups[0].slowest, (Link{group[0], group[1]}));
}
/// Of three links that explain alike, one is between others.
TEST_P(Layouts, SuspectASlowRankBesideALinkAsSlowAsItsOwn) {
  const auto layout = GetParam();
  if (layout.dataSize < 4 || layout.pipelineSize < 2) return;
  const auto group = layout.dataGroup(0);
  for (const bool timing : {true, false}) {
    ProfiledJob job(layout);
    job.timing = timing;
    job.compute[group[3]] = 3;
    job.links[{group[0], group[1]}] = 2.8;
    const auto found = job.judge();
    ASSERT_EQ(found.ranks.size(), 1u) << found.reason;
    EXPECT_EQ(found.ranks[0].rank, group[3]);
    EXPECT_TRUE(found.groups.empty()) << "the group is no slower than the rank makes it: " << found.reason;
    job.links[{group[0], group[1]}] = 7;
    EXPECT_EQ(job.judge().groups.size(), 1u) << found.reason;
  }
}

TEST(Suspicion, SaysWhatTheNetworkOfTheSlowestLinkIsLike) {
  ProfiledJob job({4, 2, 1});
  job.links[{0, 2}] = 4;
  job.network = {{{0, 2}, {falconNetCongested, 0.83}}, {{2, 4}, {falconNetHealthy, 0.02}}};
  const auto found = job.judge();
  ASSERT_EQ(found.groups.size(), 1U) << found.reason;
  EXPECT_NE(found.reason.find("(0 -> 2 most of it: its network is congested (score 0.83))"), std::string::npos)
      << found.reason;
  EXPECT_EQ(found.reason.find("healthy (score"), std::string::npos) << found.reason;

  ProfiledJob healthy({4, 2, 1});
  healthy.network = {{{0, 2}, {falconNetCongested, 0.83}}};
  EXPECT_TRUE(healthy.judge().empty()) << "a condition is no slowness";
}

INSTANTIATE_TEST_SUITE_P(OfEightRanks, Layouts,
                         testing::Values(topology::Layout{8, 1, 1}, topology::Layout{4, 2, 1},
                                         topology::Layout{2, 4, 1}, topology::Layout{2, 1, 1}));

TEST(Suspicion, OfNobodyIsEmptyAndSaysSo) {
  const auto found = suspect({});
  EXPECT_TRUE(found.empty());
  EXPECT_FALSE(found.reason.empty());
}

RankComparison computingAsEver(Rank rank, double own) {
  RankComparison each;
  each.rank = rank;
  each.healthy.own = each.now.own = own;
  return each;
}

/// Three ranks in a ring, one connection each; then in the ring the other way round.
std::vector<RankComparison> afterARerouting(double secondsOnNewLink) {
  std::vector<RankComparison> ranks;
  for (Rank rank = 0; rank < 3; ++rank) {
    RankComparison each = computingAsEver(rank, 0.2);
    each.healthy.inLibrary = 0.1;
    each.now.inLibrary = 0.05 + secondsOnNewLink;
    each.healthy.communicators = {{7, 0.1}};
    each.now.communicators = {{7, 0.05 + secondsOnNewLink}};
    each.healthy.transfers = {{7, (rank + 1) % 3, 0, true, 1e6, 0.05, 0}};
    each.now.transfers = {{7, (rank + 2) % 3, 0, true, 1e6, rank == 1 ? secondsOnNewLink : 0.05, 0}};
    ranks.push_back(each);
  }
  return ranks;
}

TEST(Suspicion, SeesASlowConnectionThatTheBaselineDidNotHave) {
  const std::vector<CommunicatorMembers> group{{7, {0, 1, 2}}};
  EXPECT_TRUE(suspect({.ranks = afterARerouting(0.052), .communicators = group}).empty());
  const auto found = suspect({.ranks = afterARerouting(0.3), .communicators = group});
  ASSERT_EQ(found.groups.size(), 1u);
  EXPECT_EQ(found.groups[0].slowest, (Link{1, 0}));
}

TEST(Suspicion, OfAGroupExplainsTheOneAroundIt) {
  std::vector<RankComparison> ranks;
  for (Rank rank = 0; rank < 4; ++rank) {
    RankComparison each = computingAsEver(rank, 0.2);
    each.healthy.inLibrary = 0.1;
    each.healthy.communicators = {{1, 0.01}, {2, 0.05}};
    each.now.communicators = {{1, 0.1}, {2, rank % 2 ? 0.05 : 0.4}};
    ranks.push_back(each);
  }
  const CommunicatorMembers all{1, {0, 1, 2, 3}}, even{2, {0, 2}};
  const auto found = suspect({.ranks = ranks, .communicators = {all, even}});
  ASSERT_EQ(found.groups.size(), 1u) << found.reason;
  EXPECT_EQ(found.groups[0].communicator, 2u);
  EXPECT_NE(found.reason.find("among ranks 0, 2 "), std::string::npos) << found.reason;
  // Without the smaller one it is not hidden.
  EXPECT_EQ(suspect({.ranks = ranks, .communicators = {all}}).groups.size(), 1u);
}

/// NVLink is timed by nobody, and the network beside it is as fast as ever.
TEST(Suspicion, OfAVendorsGroupDoesNotNeedASlowConnectionAmongThoseThatAreTimed) {
  std::vector<RankComparison> ranks;
  for (Rank rank = 0; rank < 3; ++rank) {
    RankComparison each = computingAsEver(rank, 0.2);
    each.healthy.inLibrary = 0.1;
    each.now.inLibrary = 0.4;
    each.healthy.communicators = {{7, 0.1}};
    each.now.communicators = {{7, 0.4}};
    each.healthy.transfers = each.now.transfers = {{7, (rank + 1) % 3, 0, true, 1e6, 0.05, 0}};
    ranks.push_back(each);
  }
  const CommunicatorMembers host{7, {0, 1, 2}}, vendors{7, {0, 1, 2}, "", true};
  EXPECT_TRUE(suspect({.ranks = ranks, .communicators = {host}}).groups.empty());
  const auto found = suspect({.ranks = ranks, .communicators = {vendors}});
  ASSERT_EQ(found.groups.size(), 1u) << found.reason;
  EXPECT_EQ(found.groups[0].slowest, Link{}) << "which one is not known";
}

/// Everybody waits in the group, rank 0 for nobody; its connection's bytes seem to take long either way.
std::vector<RankComparison> stalledReceiver(double leastWaiting) {
  std::vector<RankComparison> ranks;
  for (Rank rank = 0; rank < 3; ++rank) {
    RankComparison each = computingAsEver(rank, 0.2);
    each.healthy.inLibrary = 0.1;
    each.now.inLibrary = 0.5;
    each.healthy.communicators = {{7, 0.05}};
    each.now.communicators = {{7, rank == 0 ? leastWaiting : 0.4}};
    each.healthy.transfers = {{7, (rank + 1) % 3, 0, true, 1e6, 0.01, 0}};
    each.now.transfers = {{7, (rank + 1) % 3, 0, true, 1e6, rank == 1 ? 0.3 : 0.01, 0}};
    ranks.push_back(each);
  }
  return ranks;
}

TEST(Suspicion, OfAGroupNeedsMoreThanBytesThatWereNotFetched) {
  const std::vector<CommunicatorMembers> group{{7, {0, 1, 2}}};
  EXPECT_TRUE(suspect({.ranks = stalledReceiver(0.05), .communicators = group}).empty());
  EXPECT_EQ(suspect({.ranks = stalledReceiver(0.4), .communicators = group}).groups.size(), 1u);
}

/// A job of 645 ms an iteration whose exchange takes most of it; link 3 -> 5 is slower by `factor`. Figures of a run
/// with all links at 10 MB/s: bytes in flight that wait for the link to take them are 19 ms of the exchange in health.
Suspicion ofALinkInALongExchange(double factor) {
  const std::vector<CommunicatorMembers> groups{{8, {0, 2, 4, 6}}, {9, {1, 3, 5, 7}}};
  const double delay = 0.21 * (factor - 1);
  std::vector<RankComparison> ranks;
  for (Rank rank = 0; rank < 8; ++rank) {
    RankComparison each = computingAsEver(rank, 0.25);
    each.healthy.inLibrary = 0.395;
    each.now.inLibrary = 0.395 + delay;
    const Rank next = (rank / 2 + 1) % 4;
    const CommunicatorId group = rank % 2 ? 9 : 8;
    each.healthy.communicators = {{group, 0.36}};
    each.now.communicators = {{group, 0.36 + (rank % 2 ? delay : 0)}};
    each.healthy.transfers = {{group, next, 0, true, 2e6, 0.019, 0}};
    const double blocked = rank == 3 ? 0.88 * delay : rank == 5 ? 0.14 * delay : 0;
    each.now.transfers = {{group, next, 0, true, 2e6, 0.019 + blocked, 0}};
    ranks.push_back(each);
  }
  return suspect({.ranks = ranks, .communicators = groups});
}

TEST(Suspicion, OfALinkNeedsAPartOfTheDelayAndNotOfTheGroupsTime) {
  EXPECT_TRUE(ofALinkInALongExchange(1).empty());
  for (const double factor : {1.25, 1.3, 1.5, 2.0, 3.0}) {
    const auto found = ofALinkInALongExchange(factor);
    ASSERT_EQ(found.groups.size(), 1u) << factor << ": " << found.reason;
    EXPECT_EQ(found.groups[0].communicator, 9u);
    EXPECT_EQ(found.groups[0].slowest, (Link{3, 5}));
    EXPECT_TRUE(found.ranks.empty()) << found.reason;
  }
}

/// Where hardly any time is spent in health, a little waiting is many times as much.
TEST(Suspicion, OfARankThatExplainsTheWholeDelayFallsOnNoneOfItsGroups) {
  const std::vector<CommunicatorMembers> groups{{7, {0, 1}}, {8, {0, 1, 2, 3}}};
  const auto found = [&](double rankOne) {
    std::vector<RankComparison> ranks;
    for (Rank rank = 0; rank < 4; ++rank) {
      RankComparison each = computingAsEver(rank, 0.05);
      each.healthy.communicators = {{7, 0.0005}, {8, 0.0005}};
      each.now.communicators = {{7, 0.006}, {8, 0.006}};
      each.healthy.inLibrary = 0.034;
      each.now.inLibrary = 0.072;
      ranks.push_back(each);
    }
    ranks[1].now.own += rankOne;
    ranks[1].now.inLibrary -= rankOne;
    return suspect({.ranks = ranks, .communicators = groups});
  };
  EXPECT_EQ(found(0.038).ranks.size(), 1u);
  EXPECT_TRUE(found(0.038).groups.empty()) << found(0.038).reason;
  EXPECT_EQ(found(0.025).ranks.size(), 1u);
  EXPECT_EQ(found(0.025).groups.size(), 1u) << found(0.025).reason;
}

TEST(Suspicion, FallsOnNobodyWhoExplainsNextToNothing) {
  std::vector<RankComparison> ranks;
  for (Rank rank = 0; rank < 4; ++rank) {
    RankComparison each = computingAsEver(rank, 0.1);
    each.healthy.inLibrary = 0.2;
    each.now.inLibrary = 0.6;
    ranks.push_back(each);
  }
  ranks[2].now.own = 0.13;  // 30 ms of the 400 that every iteration became longer
  EXPECT_TRUE(suspect({.ranks = ranks}).empty());
  ranks[2].now.own = 0.4;
  EXPECT_EQ(suspect({.ranks = ranks}).ranks.size(), 1u);
}

TEST(Suspicion, DoesNotBlameThoseWhoStayedTheSameWhenOthersGotFaster) {
  std::vector<RankComparison> ranks;
  for (Rank rank = 0; rank < 8; ++rank) {
    RankComparison each = computingAsEver(rank, 0.2);
    if (rank > 0) each.now.own = 0.1;
    ranks.push_back(each);
  }
  EXPECT_TRUE(suspect({.ranks = ranks}).empty());
}

constexpr CommunicatorId everybody = 7, pair = 8;

/// Four ranks that also meet in a pair, two of them. An iteration is longer by 0.1 s.
struct Waiting {
  std::map<Rank, double> own;               ///< seconds longer
  std::map<CommunicatorId, double> groups;  ///< seconds longer
  bool timed = false;                       ///< and what moves there moves as fast as ever
  std::vector<instrument::DelaySource> chain;
  double unexplained = 0;

  Suspicion judge() const {
    SeenInProfile seen{.communicators = {{everybody, {0, 1, 2, 3}}, {pair, {0, 1}}}};
    seen.chain = instrument::Blame{.sources = chain, .unexplainedShare = unexplained};
    const auto longer = [](const auto& seconds, auto key) {
      const auto found = seconds.find(key);
      return found == seconds.end() ? 0 : found->second;
    };
    for (Rank rank = 0; rank < 4; ++rank) {
      RankComparison each{.rank = rank, .healthy = {.own = 0.1, .inLibrary = 0.1}};
      each.now.own = 0.1 + longer(own, rank);
      each.now.inLibrary = 0.3 - each.now.own;
      for (const CommunicatorId id : {everybody, pair}) {
        each.healthy.communicators.push_back({id, 0.02});
        each.now.communicators.push_back({id, 0.02 + longer(groups, id)});
        if (timed) each.healthy.transfers.push_back({id, (rank + 1) % 2, 0, true, 1e6, 0.01, 0});
      }
      each.now.transfers = each.healthy.transfers;
      seen.ranks.push_back(each);
    }
    return suspect(seen);
  }
};

using CauseKind = instrument::DelaySource::Kind;
instrument::DelaySource atRank(Rank rank, double share) {
  return {.kind = CauseKind::rank, .rank = rank, .share = share, .growth = 2};
}
instrument::DelaySource atGroup(double share) {
  return {.kind = CauseKind::group, .communicator = pair, .share = share, .growth = 2};
}
/// Of the communicator over all.
instrument::DelaySource atLink(Link link, double share) {
  return {.kind = CauseKind::link, .link = link, .communicator = everybody, .share = share, .growth = 2};
}

struct SuspicionRow {
  const char* why;
  Waiting waiting;
  std::set<Rank> ranks;
  std::set<CommunicatorId> groups;
};

TEST(Suspicion, LooksWhereTheChainOfWaitingLeads) {
  const std::map<Rank, double> two{{1, 0.05}, {2, 0.05}}, whole{{1, 0.1}}, half{{1, 0.05}};
  const std::map<CommunicatorId, double> slow{{everybody, 0.08}};
  const SuspicionRow rows[] = {
      {"the chain alone", {.chain = {atRank(3, 0.9)}}, {3}, {}},
      {"less than half", {.chain = {atRank(3, 0.4)}}, {}, {}},
      {"nobody is accused twice", {.own = half, .chain = {atRank(1, 0.9)}}, {1}, {}},
      {"nobody waits for rank 2", {.own = two, .chain = {atRank(1, 0.9)}}, {1}, {}},
      {"members of an accused group stay", {.own = two, .groups = slow, .chain = {atGroup(0.7)}}, {1}, {pair}},
      {"not clear: all stay", {.own = two, .groups = slow, .chain = {atGroup(0.4)}}, {1, 2}, {everybody, pair}},
      {"little", {.own = two, .groups = slow, .chain = {atGroup(0.2)}}, {1, 2}, {everybody}},
      {"everybody's computing leads nowhere",
       {.own = two, .chain = {{.kind = CauseKind::everybody, .share = 0.8}}},
       {1, 2},
       {}},
      // A group with little of the delay is explained by whom it shares with an accused one.
      {"a group's members", {.groups = slow, .chain = {atGroup(1), atLink({0, 2}, 0.1)}}, {}, {pair}},
      {"a rank's link", {.groups = slow, .chain = {atRank(1, 1), atLink({1, 2}, 0.1)}}, {1}, {}},
      {"a link between others", {.groups = slow, .chain = {atRank(1, 1), atLink({2, 3}, 0.1)}}, {1}, {everybody}},
      {"two at once", {.groups = slow, .chain = {atGroup(1), atLink({0, 2}, 0.4)}}, {}, {everybody, pair}},
      {"a rank and a link", {.groups = slow, .chain = {atRank(1, 1), atLink({1, 2}, 0.4)}}, {1}, {everybody}},
      // A throttled rank stands still in the middle of collectives too, and while messages come to it.
      {"the whole delay", {.own = whole, .chain = {atGroup(0.37), atLink({0, 1}, 0.31), atRank(1, 0.22)}}, {1}, {}},
      {"not between others",
       {.own = whole, .chain = {atGroup(0.37), atLink({2, 3}, 0.31), atRank(1, 0.22)}},
       {1},
       {everybody}},
      {"half of it",
       {.own = half, .chain = {atGroup(0.37), atLink({2, 3}, 0.31), atRank(1, 0.22)}},
       {1},
       {everybody, pair}},
      {"who alone is in both", {.own = half, .chain = {atGroup(0.37), atLink({1, 2}, 0.31), atRank(1, 0.22)}}, {1}, {}},
      {"two are in both",
       {.own = half, .chain = {atGroup(0.37), atLink({1, 0}, 0.31), atRank(1, 0.22)}},
       {1},
       {everybody, pair}},
      // Where all wait, and nothing moves slowly.
      {"somebody has it", {.groups = {{pair, 0.1}}, .timed = true, .unexplained = 0.2}, {}, {}},
      {"a link is found first",
       {.groups = {{pair, 0.1}}, .timed = true, .chain = {atLink({0, 2}, 0.6)}, .unexplained = 0.4},
       {},
       {everybody}},
      {"nobody has it", {.groups = {{pair, 0.1}}, .timed = true, .unexplained = 0.8}, {}, {pair}},
  };
  for (const SuspicionRow& row : rows) {
    const Suspicion found = row.waiting.judge();
    std::set<Rank> ranks;
    std::set<CommunicatorId> groups;
    for (const RankSuspect& each : found.ranks) ranks.insert(each.rank);
    for (const GroupSuspect& each : found.groups) groups.insert(each.communicator);
    EXPECT_EQ(ranks, row.ranks) << row.why << ": " << found.reason;
    EXPECT_EQ(groups, row.groups) << row.why << ": " << found.reason;
    EXPECT_EQ(found.ranks.size() + found.groups.size(), ranks.size() + groups.size()) << row.why;
  }
}

TEST(Suspicion, SaysWhereAllWaitAndWhoForIsNotTold) {
  const Suspicion found = Waiting{.groups = {{pair, 0.12}}, .timed = true, .unexplained = 0.8}.judge();
  EXPECT_EQ(found.reason, "all of ranks 0, 1 wait 7.0 times longer there, and who for is not told");
}

/// What is known explains all that it may show in.
TEST(Suspicion, FallsOnNobodyWhomAKnownCulpritMayExplain) {
  const auto left = [](std::vector<Candidate> known) {
    SeenInProfile seen{.communicators = {{1, {0, 1, 2, 3}}, {2, {0, 2}}, {3, {1, 3}}}, .known = std::move(known)};
    seen.chain = instrument::Blame{.sources = {atRank(1, 0.6), atRank(2, 0.6)}};
    for (const auto& group : seen.communicators)
      seen.chain->sources.push_back({.kind = CauseKind::group, .communicator = group.communicator, .share = 0.4});
    const Suspicion found = suspect(seen);
    return std::pair(found.ranks.size(), found.groups.size());
  };
  const Candidate rank{.kind = CandidateKind::rank, .rank = 1}, link{.kind = CandidateKind::link, .link = {2, 0}};
  EXPECT_EQ(left({}), std::pair(2UL, 3UL));
  EXPECT_EQ(left({rank}), std::pair(1UL, 1UL)) << "its groups, too";
  EXPECT_EQ(left({link}), std::pair(2UL, 1UL)) << "wherever both ends meet";
  EXPECT_EQ(left({rank, link}), std::pair(1UL, 0UL));
}

}  // namespace
}  // namespace falcon::diagnose
