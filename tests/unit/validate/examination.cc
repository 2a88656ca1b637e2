// How the tests of a whole job travel.
#include "validate/examination.h"

#include <gtest/gtest.h>

#include <cmath>

namespace falcon::validate {
namespace {

Examination example() {
  Examination examination{.heldSeconds = 1.5, .ranks = {}, .links = {}};
  for (const Rank rank : {0, 1, 3}) {
    ExaminedRank examined{.rank = rank, .site = {"node", "10.0.0.1", "host"}, .gigaflops = 10.0 + rank};
    examined.evidence.throttled = 0.25;
    examined.evidence.power = 0.5;
    examination.ranks.push_back(examined);
  }
  examination.links = {{.link = {0, 3}, .status = LinkStatus::measured, .bytes = 7, .seconds = 1}};
  return examination;
}

TEST(Examination, ArrivesAsItWas) {
  const Examination sent = example();
  const auto read = decodeExamination(encode(sent));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->heldSeconds, 1.5);
  ASSERT_EQ(read->ranks.size(), 3u);
  EXPECT_EQ(read->ranks[2].rank, 3);
  EXPECT_EQ(read->ranks[2].gigaflops, 13);
  EXPECT_TRUE(std::isnan(read->ranks[2].memoryRate));
  EXPECT_EQ(read->ranks[2].site.host, "host");
  EXPECT_EQ(read->ranks[2].evidence.throttled, 0.25);
  EXPECT_EQ(read->ranks[2].evidence.power, 0.5);
  EXPECT_EQ(read->links, sent.links);
}

TEST(Examination, IsRefusedWhereItIsShortOrMakesNoSense) {
  const std::string whole = encode(example());
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(decodeExamination(std::string_view(whole).substr(0, length))) << length;
  EXPECT_FALSE(decodeExamination(whole + "x"));
  Examination twice = example();
  twice.ranks[1].rank = 0;
  EXPECT_FALSE(decodeExamination(encode(twice)));
  Examination elsewhere = example();
  elsewhere.links[0].link = {0, 2};
  EXPECT_FALSE(decodeExamination(encode(elsewhere)));
}

}  // namespace
}  // namespace falcon::validate
