// Names, sizes, offsets, values and signatures: ours against the vendor's.
#include "abi/facts.h"

#include <gtest/gtest.h>

#include <fstream>
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
  if (vendors.empty()) GTEST_SKIP() << "the vendor's header on this machine is none, or of another release";
  ASSERT_EQ(ours.size(), vendors.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].name, vendors[i].name);
    EXPECT_EQ(ours[i].value, vendors[i].value) << ours[i].name;
  }
}

// As scripts/vendor-facts read them out of the newest header.
TEST(Facts, AreThoseWrittenDown) {
  std::ifstream file(FALCON_VENDOR_FACTS "/2.32.3.facts");
  std::map<std::string, std::string> written;
  for (std::string line; std::getline(file, line);)
    written[line.substr(0, line.find('\t'))] = line.substr(line.find('\t') + 1);
  EXPECT_GT(written.size(), 300u);
  EXPECT_EQ(mapOf(factsOfOurs()), written);
}

}  // namespace
}  // namespace falcon::abi
