// Whose interface an injection takes.
#include "inject/victim.h"

#include <gtest/gtest.h>

namespace falcon::tools {
namespace {

TEST(Victim, InterfacesAreReadWithoutLoopback) {
  const auto read = parseInterfaces(
      "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever\n"
      "2: eth0    inet 10.1.0.2/24 brd 10.1.0.255 scope global eth0\\       valid_lft forever\n"
      "garbage\n3: ib0    inet 10.2.0.2/16 scope global ib0\n");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].name, "eth0");
  EXPECT_EQ(read[1].address, "10.2.0.2");
}

TEST(Victim, TheWishDecidesAndElseTheFirst) {
  const std::vector<Interface> all{{"eth0", "a"}, {"eth01", "b"}, {"ib0", "c"}};
  EXPECT_EQ(chooseInterface(all, "=eth01").name, "eth01");
  EXPECT_EQ(chooseInterface(all, "ib").name, "ib0");
  EXPECT_EQ(chooseInterface(all, "").name, "eth0");
  EXPECT_EQ(chooseInterface(all, "wlan").name, "eth0");
  EXPECT_EQ(chooseInterface({}, "eth").name, "");
}

}  // namespace
}  // namespace falcon::tools
