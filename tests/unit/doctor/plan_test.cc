// Which links are tested, and who is under one switch.
#include <gtest/gtest.h>

#include <set>

#include "doctor/links_to_test.h"
#include "doctor/neighbours.h"
#include "doctor/rank_tests.h"
#include "validate/package_power.h"

#include <cmath>
#include <filesystem>
#include <fstream>

namespace falcon::doctor {
namespace {

std::vector<validate::RankSite> sitesOf(int nodes, int ranksPerNode, bool ownAddresses) {
  std::vector<validate::RankSite> sites;
  for (int node = 0; node < nodes; ++node)
    for (int i = 0; i < ranksPerNode; ++i) {
      const std::string name = "host" + std::to_string(node);
      sites.push_back({name, "10.0." + std::to_string(node) + "." + std::to_string(ownAddresses ? i : 0), name});
    }
  return sites;
}

TEST(LinksToTest, EveryPairInANodeBothWaysAndEachAddressBetweenNodes) {
  for (const int nodes : {1, 2, 3, 8}) {
    for (const bool ownAddresses : {false, true}) {
      const auto sites = sitesOf(nodes, 4, ownAddresses);
      const auto links = linksToTest(sites);
      const std::set<Link> unique(links.begin(), links.end());
      EXPECT_EQ(unique.size(), links.size());
      for (const Link& link : links) EXPECT_TRUE(unique.contains({link.to, link.from}));
      const int inside = nodes * 4 * 3, between = nodes * (nodes - 1) * (ownAddresses ? 4 : 1);
      EXPECT_EQ(static_cast<int>(links.size()), inside + between);
    }
  }
}

TEST(LinksToTest, StayLinearForManyNodes) {
  const auto links = linksToTest(sitesOf(1000, 1, true));
  EXPECT_EQ(links.size(), 2000u);
  EXPECT_TRUE(linksToTest(sitesOf(1, 1, true)).empty());
}

TEST(Neighbours, RanksHostsAndAddresses) {
  const auto groups =
      parseNeighbours("# two switches\nleft: host0 host1 # these\n\n10.0.2.0 6 7\n", sitesOf(4, 2, false));
  ASSERT_TRUE(groups) << groups.error().message();
  ASSERT_EQ(groups->size(), 2u);
  EXPECT_EQ((*groups)[0].name, "left");
  EXPECT_EQ((*groups)[0].ranks, (std::vector<Rank>{0, 1, 2, 3}));
  EXPECT_EQ((*groups)[1].name, "line 4");
  EXPECT_EQ((*groups)[1].ranks, (std::vector<Rank>{4, 5, 6, 7}));
}

TEST(Neighbours, RefuseStrangersAndWhoIsThereTwice) {
  const auto sites = sitesOf(2, 2, false);
  for (const char* text : {"host9", "4", "0 1\n1 2", "host0 0", "-1", "", "# nobody\n"})
    EXPECT_FALSE(parseNeighbours(text, sites)) << text;
}

TEST(Loopback, CarriesBytes) {
  const auto rate = testLoopback(*SocketAddress::parse("127.0.0.1:0"), 20ms);
  ASSERT_TRUE(rate) << rate.error().message();
  EXPECT_GT(*rate, 1e5);
  EXPECT_FALSE(testLoopback(*SocketAddress::parse("203.0.113.1:0"), 1ms));
}

TEST(Power, DrawnOverAllowed) {
  const auto folder = std::filesystem::temp_directory_path() / ("falcon_power_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "energy_uj") << 5'000'000;
  std::ofstream(folder / "constraint_0_power_limit_uw") << 100'000'000;
  const auto before = validate::readPackagePower(folder);
  auto after = before;
  after.microjoules += 90e6;
  std::filesystem::remove_all(folder);
  EXPECT_DOUBLE_EQ(validate::packagePowerShare(before, after, 1s), 0.9);
  EXPECT_TRUE(std::isnan(validate::packagePowerShare(after, before, 1s)));  // the counter began anew
  EXPECT_TRUE(std::isnan(
      validate::packagePowerShare(validate::readPackagePower("/nowhere"), validate::readPackagePower("/nowhere"), 1s)));
}

}  // namespace
}  // namespace falcon::doctor
