#include "base/socket_address.h"

#include <gtest/gtest.h>

namespace falcon {
namespace {

TEST(SocketAddress, ReadsAndWritesBothFamilies) {
  for (const char* text : {"127.0.0.1:4000", "10.1.0.2:65535", "[::1]:4000", "[fe80::1]:1"}) {
    const auto address = SocketAddress::parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->text(), text);
    // The same from the kernel's form.
    EXPECT_EQ(SocketAddress(address->get(), address->length()).text(), text);
  }
  const auto four = SocketAddress::parse("127.0.0.1:4000"), six = SocketAddress::parse("[::1]:4000");
  EXPECT_EQ(four->family(), AF_INET);
  EXPECT_EQ(six->family(), AF_INET6);
  EXPECT_EQ(six->host(), "::1");
  EXPECT_EQ(six->port(), 4000);
}

TEST(SocketAddress, TakesAnotherPort) {
  for (const char* text : {"127.0.0.1:4000", "[::1]:4000"}) {
    auto address = SocketAddress::parse(text);
    ASSERT_TRUE(address);
    address->setPort(99);
    EXPECT_EQ(address->port(), 99);
  }
}

TEST(SocketAddress, WhatComesFromOutsideHasNoNames) {
  EXPECT_TRUE(SocketAddress::parse("localhost:4000"));
  EXPECT_FALSE(SocketAddress::parseNumeric("localhost:4000"));
  for (const char* text : {"127.0.0.1:4000", "[::1]:4000"}) {
    const auto address = SocketAddress::parseNumeric(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->text(), text);
  }
}

TEST(SocketAddress, RefusesWhatIsNone) {
  for (const char* bad :
       {"", "127.0.0.1", "127.0.0.1:", ":", "300.1.1.1.1:80", "host name:80", "127.0.0.1:port-that-is-none", ":80",
        "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1: 80", "127.0.0.1:80 "}) {
    const auto address = SocketAddress::parse(bad);
    ASSERT_FALSE(address) << bad;
    EXPECT_EQ(address.error().code(), ErrorCode::invalidArgument);
    EXPECT_FALSE(address.error().message().empty());
  }
  EXPECT_TRUE(SocketAddress().empty());
}

}  // namespace
}  // namespace falcon
