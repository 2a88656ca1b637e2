// What a tuner's rules say, and what they make of a table of costs.
#include "tuner/rules.h"

#include <gmock/gmock.h>

namespace falcon::tuner {
namespace {

using plugin::protocolLl;
using plugin::protocolSimple;
using plugin::ringAlgorithm;
using plugin::treeAlgorithm;
using testing::HasSubstr;

std::vector<Rule> rulesOf(std::string_view text) {
  auto rules = parseRules(text);
  EXPECT_TRUE(rules) << text;
  return rules ? *rules : std::vector<Rule>();
}

/// Tree and Ring with LL and Simple can be had.
struct Table {
  Table() {
    for (auto& row : costs)
      for (float& cost : row) cost = plugin::ignoredCost;
    for (const int algorithm : {treeAlgorithm, ringAlgorithm})
      for (const int protocol : {protocolLl, protocolSimple}) costs[algorithm][protocol] = 10;
  }
  int follow(std::string_view rules, const AskedCall& call = {plugin::TunedFunction::allReduce, 1000, 0, 8}) {
    int channels = 0;
    tuner::follow(rulesOf(rules), call, &costs[0][0], plugin::tunerAlgorithms, plugin::tunerProtocols, &channels);
    return channels;
  }
  std::string possible() const {
    std::string text;
    for (const int algorithm : {treeAlgorithm, ringAlgorithm})
      for (const int protocol : {protocolLl, protocolSimple}) text += costs[algorithm][protocol] >= 0 ? '1' : '0';
    return text;
  }
  plugin::CostTable costs;
};

TEST(TunerRules, TakeAwayWhatIsToBeAvoided) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "1111"},
      {"# nothing\n\n", "1111"},
      {"avoid AllReduce Tree *", "0011"},
      {"avoid allreduce tree simple # slow since the new switch", "1011"},
      {"avoid * * LL", "0101"},
      {"avoid AllGather Tree *", "1111"},
      {"avoid AllReduce Tree * bytes=1k-", "1111"},
      {"avoid AllReduce Tree * bytes=-1k", "0011"},
      {"avoid AllReduce Tree * bytes=1000-1001", "0011"},
      {"avoid AllReduce Tree * ranks=8", "0011"},
      {"avoid AllReduce Tree * ranks=4", "1111"},
      {"avoid AllReduce Tree LL\navoid AllReduce Ring Simple", "0110"},
  };
  for (const auto& [rules, possible] : cases) {
    Table table;
    EXPECT_EQ(table.follow(rules), 0) << rules;
    EXPECT_EQ(table.possible(), possible) << rules;
  }
}

TEST(TunerRules, BeginAtACallThatAllRanksCountAlike) {
  for (const auto& [number, possible] : {std::pair{99, "1111"}, {100, "0011"}, {5000, "0011"}}) {
    Table table;
    table.follow("avoid AllReduce Tree * from=100",
                 {plugin::TunedFunction::allReduce, 1000, static_cast<std::uint64_t>(number), 8});
    EXPECT_EQ(table.possible(), possible) << number;
  }
}

/// NCCL fails a call for which nothing is left.
TEST(TunerRules, NeverTakeAwayAll) {
  Table table;
  table.follow("avoid AllReduce * *");
  EXPECT_EQ(table.possible(), "1111");
  Table two;
  two.follow("avoid AllReduce Ring *\navoid AllReduce Tree *");
  EXPECT_EQ(two.possible(), "1111");
}

TEST(TunerRules, WishForChannels) {
  Table table;
  EXPECT_EQ(table.follow("channels AllReduce 4 bytes=-1M\nchannels AllReduce 2 bytes=1M-"), 4);
  EXPECT_EQ(table.possible(), "1111");
  EXPECT_EQ(table.follow("channels AllReduce 4", {plugin::TunedFunction::reduce, 10, 0, 8}), 0);
}

TEST(TunerRules, WhatIsNoRuleIsNamedWithItsLine) {
  for (const char* line :
       {"avoid", "avoid AllReduce", "avoid AllReduce Tree", "avoid AllReduse Tree *", "avoid AllReduce Star *",
        "avoid AllReduce Tree LL129", "prefer AllReduce Tree *", "channels AllReduce 0", "channels AllReduce 65",
        "channels AllReduce many", "avoid AllReduce Tree * bytes=5", "avoid AllReduce Tree * bytes=5-2",
        "avoid AllReduce Tree * bytes=1T-", "avoid AllReduce Tree * from=x", "avoid AllReduce Tree * until=7",
        "avoid AllReduce Tree * from=99999999999999999999", "avoid AllReduce Tree * bytes=99999999999G-"}) {
    const auto rules = parseRules(std::string("# remark\n") + line);
    ASSERT_FALSE(rules) << line;
    EXPECT_THAT(rules.error().message(), HasSubstr("line 2"));
    EXPECT_THAT(rules.error().message(), HasSubstr(line));
  }
}

}  // namespace
}  // namespace falcon::tuner
