// What ranks tell each other over the out-of-band network has no limit of length.
#include <gtest/gtest.h>

#include <string>

#include "control/checkpointing.h"
#include "unit/bootstrap/ranks.h"

namespace falcon::control {
namespace {

TEST(NetworkExchange, GathersMoreThanTheNetworkTakesAtOnce) {
  constexpr int size = 3;
  const auto networks = bootstrap::formed(size);
  const auto wordsOf = [](Rank rank) {
    // One says nothing, one a little, one 3 MiB, of which no two pieces are alike.
    std::string words;
    for (std::uint32_t i = 0; rank == 2 && words.size() < (3u << 20) + 17; ++i) words += std::to_string(i);
    return rank == 1 ? std::string("a word") : words;
  };
  bootstrap::onThreads(size, [&](Rank rank) {
    NetworkExchange exchange(*networks[static_cast<std::size_t>(rank)], nullptr);
    for (int round = 0; round < 2; ++round) {
      const auto all = exchange.allGather(wordsOf(rank));
      ASSERT_TRUE(all) << all.error().message();
      ASSERT_EQ(all->size(), static_cast<std::size_t>(size));
      for (Rank from = 0; from < size; ++from) EXPECT_TRUE((*all)[static_cast<std::size_t>(from)] == wordsOf(from));
    }
  });
}

}  // namespace
}  // namespace falcon::control
