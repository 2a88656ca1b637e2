#include "gpu/unique_id_room.h"

#include <gtest/gtest.h>

#include <cstring>

namespace falcon::gpu {
namespace {

/// As the vendor leaves it.
ncclUniqueId vendors() {
  ncclUniqueId id{};
  std::memset(id.internal, 'v', 40);
  return id;
}

bootstrap::UniqueId ours(const char* address) {
  bootstrap::UniqueId id{*SocketAddress::parse(address), 0x1234, {}};
  id.secret.fill(std::byte{7});
  return id;
}

TEST(UniqueIdRoom, HoldsOursBesideTheVendors) {
  for (const char* address : {"192.168.1.2:4567", "[2001:db8:ffff:ffff:ffff:ffff:ffff:1]:65535"}) {
    ncclUniqueId id = vendors();
    EXPECT_TRUE(hasRoom(id));
    EXPECT_FALSE(read(id));
    ASSERT_TRUE(write(ours(address), id));
    EXPECT_FALSE(hasRoom(id));
    EXPECT_EQ(std::memcmp(id.internal, vendors().internal, 40), 0) << "the vendor's part is the vendor's";
    const auto found = read(id);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->address.text(), ours(address).address.text());
    EXPECT_EQ(found->key, 0x1234u);
    EXPECT_EQ(found->secret, ours(address).secret);
  }
}

TEST(UniqueIdRoom, IsNotThereWhereTheVendorUsesAllOfIt) {
  ncclUniqueId id = vendors();
  id.internal[127] = 1;
  EXPECT_FALSE(hasRoom(id));
  EXPECT_FALSE(read(id));
}

TEST(UniqueIdRoom, WhatGoesWithAnotherIdIsNotOurs) {
  ncclUniqueId id = vendors();
  ASSERT_TRUE(write(ours("10.0.0.1:99"), id));
  for (const int place : {0, 20, 39}) {
    ncclUniqueId other = id;
    other.internal[place] ^= 1;
    EXPECT_FALSE(read(other)) << place;
  }
  EXPECT_TRUE(read(id));
}

TEST(UniqueIdRoom, WhatIsDamagedIsNotOurs) {
  for (int place = 40; place < 100; ++place) {
    ncclUniqueId id = vendors();
    ASSERT_TRUE(write(ours("10.0.0.1:99"), id));
    if (id.internal[place] == 0) continue;
    id.internal[place] ^= 0x40;
    EXPECT_FALSE(read(id)) << place;
  }
}

}  // namespace
}  // namespace falcon::gpu
