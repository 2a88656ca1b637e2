#include "bootstrap/communicator_network.h"

#include <gmock/gmock.h>
#include <mutex>

#include <algorithm>
#include <atomic>
#include <set>

#include "ranks.h"

namespace falcon::bootstrap {
namespace {

using testing::HasSubstr;

class Networks : public testing::TestWithParam<int> {};

TEST_P(Networks, GatherEveryRanksBytesInOrderManyTimes) {
  const int size = GetParam();
  const auto networks = formed(size);
  std::set<CommunicatorId> ids;
  for (const Network& network : networks) ids.insert(network->id());
  EXPECT_EQ(ids.size(), 1u);
  onThreads(size, [&](Rank rank) {
    const Network& network = networks[static_cast<std::size_t>(rank)];
    EXPECT_EQ(network->rank(), rank);
    EXPECT_EQ(network->size(), size);
    for (std::size_t round = 0; round < 30; ++round) {
      // Lengths from nothing to more than a socket buffer takes at once.
      const std::size_t length = round == 29 ? (size > 4 ? 1 << 17 : 1 << 20) : round * 37;
      const auto all = network->allGather(std::string(length, static_cast<char>('a' + rank)), 60s);
      ASSERT_TRUE(all) << all.error().message();
      ASSERT_EQ(all->size(), static_cast<std::size_t>(size));
      for (std::size_t from = 0; from < all->size(); ++from)
        ASSERT_TRUE((*all)[from] == std::string(length, static_cast<char>('a' + from)));
    }
    EXPECT_TRUE(network->barrier(60s));
    EXPECT_FALSE(network->failure());
  });
}

TEST_P(Networks, SplitByColorAndKey) {
  const int size = GetParam();
  const auto networks = formed(size);
  std::vector<CommunicatorId> ids(static_cast<std::size_t>(size));
  onThreads(size, [&](Rank rank) {
    const Network& parent = networks[static_cast<std::size_t>(rank)];
    for (int round = 0; round < 3; ++round) {
      // Even ranks in reverse order; odd ranks by old rank; rank 3 takes part without wanting a part.
      const int color = rank == 3 ? -1 : rank % 2;
      auto child = parent->split(color, rank % 2 == 0 ? -rank : 5, 60s);
      ASSERT_TRUE(child) << child.error().message();
      if (color < 0) {
        EXPECT_EQ(*child, nullptr);
        continue;
      }
      std::vector<Rank> expected;
      for (Rank other = 0; other < size; ++other)
        if (other != 3 && other % 2 == color) expected.push_back(other);
      if (color == 0) std::ranges::reverse(expected);
      const auto all = (*child)->allGather(std::to_string(rank), 60s);
      ASSERT_TRUE(all) << all.error().message();
      ASSERT_EQ(all->size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ((*all)[i], std::to_string(expected[i]));
      EXPECT_EQ(expected[static_cast<std::size_t>((*child)->rank())], rank);
      EXPECT_NE((*child)->id(), parent->id());
      if (round == 2) ids[static_cast<std::size_t>(rank)] = (*child)->id();
    }
    EXPECT_FALSE(parent->failure());
  });
  for (std::size_t other = 1; other < ids.size(); ++other) EXPECT_EQ(ids[other] == ids[0], other % 2 == 0);
}

// Whoever is excluded, rank 0 with the star's middle too; the parent whole or broken.
TEST_P(Networks, ShrinkWithoutTheExcluded) {
  const int size = GetParam();
  if (size == 1) {
    const auto alone = *aloneNetwork();
    EXPECT_FALSE(alone->shrink({}, 60s, [] { return std::nullopt; }));
    return;
  }
  for (const Rank excluded : {0, size / 2, size - 1})
    for (const bool broken : {false, true}) {
      const auto networks = formed(size);
      if (broken) networks[static_cast<std::size_t>(excluded)]->abort("no more");
      std::mutex mutex;
      std::set<CommunicatorId> ids;
      onThreads(size, [&](Rank rank) {
        if (rank == excluded) return;
        const Rank list[] = {excluded};
        for (int round = 0; round < 2; ++round) {
          const auto child = networks[static_cast<std::size_t>(rank)]->shrink(list, 60s, [] { return std::nullopt; });
          ASSERT_TRUE(child) << child.error().message();
          EXPECT_EQ((*child)->size(), size - 1);
          EXPECT_EQ((*child)->rank(), rank - (rank > excluded ? 1 : 0));
          const auto texts = (*child)->allGather(std::to_string(rank), 60s);
          ASSERT_TRUE(texts) << texts.error().message();
          for (Rank other = 0; other + 1 < size; ++other)
            EXPECT_EQ((*texts)[static_cast<std::size_t>(other)], std::to_string(other + (other >= excluded ? 1 : 0)));
          const std::lock_guard lock(mutex);
          ids.insert((*child)->id());
        }
      });
      EXPECT_EQ(ids.size(), 2u) << "one id a round";
      EXPECT_FALSE(networks[static_cast<std::size_t>(excluded)]->shrink(std::vector<Rank>{excluded}, 1s,
                                                                        [] { return std::nullopt; }));
    }
}

TEST_P(Networks, AnAbortReachesAllAndRunsTheHandlerOnce) {
  const int size = GetParam();
  const auto networks = formed(size);
  std::vector<std::atomic<int>> calls(static_cast<std::size_t>(size));
  for (std::size_t rank = 0; rank < networks.size(); ++rank)
    networks[rank]->onFailure([&calls, rank](const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::remote);
      ++calls[rank];
    });
  networks.back()->abort("out of patience");
  networks.back()->abort("again");
  for (std::size_t rank = 0; rank < networks.size(); ++rank) {
    EXPECT_TRUE(eventually([&] { return networks[rank]->failure().has_value() && calls[rank] == 1; })) << rank;
    EXPECT_THAT(networks[rank]->failure()->message(),
                testing::AllOf(HasSubstr("rank " + std::to_string(size - 1)), HasSubstr("out of patience")));
    EXPECT_FALSE(networks[rank]->barrier(60s));
    std::atomic<bool> late{false};
    networks[rank]->onFailure([&](const Error&) { late = true; });
    EXPECT_TRUE(eventually([&] { return late.load(); }));
    EXPECT_EQ(calls[rank], 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Networks, testing::Values(1, 2, 3, 4, 8, 16));

TEST(Network, LeavingIsNoDeathWhateverTheOrder) {
  for (int round = 0; round < 20; ++round) {
    auto networks = formed(4);
    std::vector<std::size_t> order{0, 1, 2, 3};
    for (int i = 0; i < round; ++i) std::ranges::next_permutation(order);
    for (const std::size_t leaver : order) {
      networks[leaver].reset();
      for (const Network& other : networks) EXPECT_FALSE(other && other->failure());
    }
  }
}

TEST(Network, ACollectiveWithOneWhoLeftEndsWithAnErrorThatNamesIt) {
  for (const Rank leaver : {0, 2}) {
    auto networks = formed(3);
    const auto stayer = static_cast<std::size_t>(leaver == 0 ? 1 : 0);
    std::thread early([&] {  // waits already
      const auto result = networks[stayer]->barrier(60s);
      ASSERT_FALSE(result);
      EXPECT_THAT(result.error().message(), HasSubstr("rank " + std::to_string(leaver)));
    });
    std::this_thread::sleep_for(20ms);
    networks[static_cast<std::size_t>(leaver)].reset();
    early.join();
    const auto result = networks[stayer]->barrier(60s);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), ErrorCode::remote);
    EXPECT_THAT(result.error().message(), HasSubstr("left"));
  }
}

/// What a rank that waits is told of those who are late, while rank 1 takes part by `comes` and rank 2 does not: rank 2
/// is named. Nobody sees when rank 1 has come, so it is given more time until it is not named too.
void expectOnlyTheLateRankIsNamed(const std::function<void(CommunicatorNetwork&)>& comes,
                                  const std::function<std::string(CommunicatorNetwork&)>& waits) {
  std::string said;
  for (Nanoseconds time = 200ms; time < 20s; time *= 3) {
    const auto networks = formed(3);
    std::thread other([&] { comes(*networks[1]); });
    std::this_thread::sleep_for(time);
    said = waits(*networks[0]);
    other.join();
    EXPECT_TRUE(eventually([&] { return networks[2]->failure().has_value(); }));
    EXPECT_FALSE(networks[2]->split(0, 0, 60s)) << "at once";
    if (said.find("in vain for rank 2 (") != std::string::npos) break;
  }
  EXPECT_THAT(said, testing::AllOf(HasSubstr("in vain for rank 2 ("), testing::Not(HasSubstr("rank 1 ("))));
}

TEST(Network, ALateRankIsNamed) {
  expectOnlyTheLateRankIsNamed([](CommunicatorNetwork& network) { EXPECT_FALSE(network.barrier(60s)); },
                               [](CommunicatorNetwork& network) {
                                 const auto result = network.barrier(200ms);
                                 return result ? std::string() : std::string(result.error().message());
                               });
}

// What some have done cannot be repeated, so nobody waits for it any longer.
TEST(Network, AGatherThatAMemberGivesUpEndsForAll) {
  expectOnlyTheLateRankIsNamed([](CommunicatorNetwork& network) { EXPECT_FALSE(network.split(0, 0, 60s)); },
                               [](CommunicatorNetwork& network) {
                                 int asked = 0;
                                 const auto given = network.split(0, 0, 60s, [&]() -> std::optional<Error> {
                                   return ++asked < 5 ? std::nullopt : std::optional(Error::remote("enough"));
                                 });
                                 return given ? std::string() : std::string(given.error().message());
                               });
}

TEST(Network, NoReplacedHandlerRunsAfterwards) {
  for (int round = 0; round < 50; ++round) {
    auto networks = formed(2);
    std::atomic<bool> replaced{false}, ranAfter{false};
    networks[0]->onFailure([&](const Error&) {
      if (replaced) ranAfter = true;
      std::this_thread::sleep_for(1ms);
      if (replaced) ranAfter = true;
    });
    std::thread breaker([&] { networks[1]->abort("test"); });
    networks[0]->onFailure(nullptr);
    replaced = true;
    breaker.join();
    EXPECT_TRUE(eventually([&] { return networks[0]->failure().has_value(); }));
    EXPECT_FALSE(ranAfter);
  }
}

TEST(Network, RoundsOfJoinSplitAndLeaveLeakNothing) {
  const auto round = [] {
    auto networks = formed(3);
    onThreads(3, [&](Rank rank) {
      auto child = networks[static_cast<std::size_t>(rank)]->split(rank / 2, 0, 60s);
      EXPECT_TRUE(child);
    });
  };
  round();
  const auto same = [](const char* folder, std::ptrdiff_t before) {
    return eventually([&] { return count(folder) <= before; });
  };
  std::this_thread::sleep_for(100ms);  // the first round's leftovers, and those of other tests
  const auto descriptors = count("/proc/self/fd");
  const auto threads = count("/proc/self/task");
  for (int i = 0; i < 50; ++i) round();
  EXPECT_TRUE(same("/proc/self/task", threads)) << count("/proc/self/task");
  EXPECT_TRUE(same("/proc/self/fd", descriptors)) << count("/proc/self/fd") << " after " << descriptors;
}

TEST(Network, AloneItWorksWithoutANetwork) {
  const auto one = *aloneNetwork();
  EXPECT_EQ(one->size(), 1);
  EXPECT_EQ(one->allGather("x", 1s)->at(0), "x");
  const auto other = *aloneNetwork();
  EXPECT_NE(one->secret(), other->secret());
  EXPECT_NE(one->id(), other->id());
}

}  // namespace
}  // namespace falcon::bootstrap
