// Names, sizes, offsets, values and signatures: ours against the vendor's.
#include "abi/facts.h"

#include <gtest/gtest.h>

#include <map>

namespace falcon::abi {
namespace {

std::map<std::string, std::string> mapOf(const std::vector<Fact>& facts) {
  std::map<std::string, std::string> map;
  for (const Fact& fact : facts) map[fact.name] = fact.value;
  return map;
}

TEST(Facts, AreThoseOfTheVendorsHeader) {
  const auto ours = factsOfOurs(), vendors = factsOfVendors();
  if (vendors.empty()) GTEST_SKIP() << "the vendor's header is not on this machine";
  ASSERT_EQ(ours.size(), vendors.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].name, vendors[i].name);
    EXPECT_EQ(ours[i].value, vendors[i].value) << ours[i].name;
  }
}

// Where the vendor's header is absent, these still hold.
TEST(Facts, AreThoseWrittenDown) {
  auto facts = mapOf(factsOfOurs());
  EXPECT_EQ(facts["NCCL_VERSION_CODE"], "22809");
  EXPECT_EQ(facts["sizeof ncclUniqueId"], "128 align 1");
  EXPECT_EQ(facts["sizeof ncclConfig_t"], "80 align 8");
  EXPECT_EQ(facts["ncclConfig_t.netName"], "32 of 8");
  EXPECT_EQ(facts["ncclConfig_t.commName"], "48 of 8");
  EXPECT_EQ(facts["ncclConfig_t.nvlinkCentricSched"], "76 of 4");
  EXPECT_EQ(facts["config.magic"], std::to_string(0xcafebeefu));
  EXPECT_EQ(facts["info.magic"], std::to_string(0x74685283));
  EXPECT_EQ(facts["ncclFloat8e5m2"], "11");
  EXPECT_EQ(facts["ncclInProgress"], "7");
  EXPECT_EQ(facts["ncclMaxRedOp"], std::to_string(0x7fffffff));
}

}  // namespace
}  // namespace falcon::abi
