// Handles come from outside.
#include "core/listener_handle.h"

#include <gtest/gtest.h>

#include <random>

#include "ext_net/ends.h"
#include "socket/socket_network.h"

namespace falcon::net {
namespace {

using test::HandleBytes;

ListenerHandle handleTo(const char* address) {
  ListenerHandle handle;
  handle.address = *SocketAddress::parseNumeric(address);
  handle.listener = 77;
  handle.secret.fill(std::byte{5});
  return handle;
}

TEST(ListenerHandle, IsReadAsItWasWritten) {
  for (const char* address : {"127.0.0.1:4000", "[::1]:65535"}) {
    HandleBytes bytes;
    write(handleTo(address), bytes.get());
    const auto read = readHandle(bytes.get());
    ASSERT_TRUE(read);
    EXPECT_EQ(read->address.text(), address);
    EXPECT_EQ(read->listener, 77u);
    EXPECT_EQ(read->secret, handleTo(address).secret);
    EXPECT_EQ(read->dialling, 0u);
    noteDialling(bytes.get(), 9);
    EXPECT_EQ(readHandle(bytes.get())->dialling, 9u);
  }
}

TEST(ListenerHandle, IsRefusedWhereAnyBitOfItIsWrong) {
  HandleBytes bytes;
  write(handleTo("10.1.2.3:4000"), bytes.get());
  const auto before = std::vector<std::byte>(bytes.get().begin(), bytes.get().end());
  std::size_t refused = 0, accepted = 0;
  for (std::size_t bit = 0; bit < 8 * before.size(); ++bit) {
    bytes.get()[bit / 8] ^= std::byte{1} << bit % 8;
    ++(readHandle(bytes.get()) ? accepted : refused);
    bytes.get()[bit / 8] = before[bit / 8];
  }
  EXPECT_EQ(refused, 8u * 64);  // what is protected; behind it lies what this process notes for itself
  EXPECT_EQ(refused + accepted, 8 * before.size());
}

TEST(ListenerHandle, OfRandomBytesEndsNothing) {
  std::mt19937_64 random(1);
  SocketNetwork over;
  ASSERT_TRUE(over.devices());
  for (int i = 0; i < 2000; ++i) {
    HandleBytes bytes;
    for (std::byte& byte : bytes.get()) byte = static_cast<std::byte>(random());
    const auto made = over.connect(0, bytes.get());
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), ErrorCode::invalidArgument);
  }
}

// Only what this process notes for itself is wrong: it is as if nothing stood there.
TEST(ListenerHandle, WithTheNumberOfAnotherConnectionStillConnects) {
  SocketNetwork over;
  ASSERT_TRUE(over.devices());
  HandleBytes first, second;
  const auto one = over.listen(0, first.get()), other = over.listen(0, second.get());
  ASSERT_TRUE(one && other);
  ASSERT_TRUE(over.connect(0, first.get()));
  const auto known = readHandle(first.get());
  ASSERT_TRUE(known);
  noteDialling(second.get(), known->dialling);
  std::unique_ptr<Connection> sender, receiver;
  EXPECT_TRUE(test::waitFor([&] {
    if (!sender) {
      auto made = over.connect(0, second.get());
      if (made) sender = std::move(*made);
    }
    if (!receiver) {
      auto made = (*other)->accept();
      if (made) receiver = std::move(*made);
    }
    return sender && receiver;
  }));
}

}  // namespace
}  // namespace falcon::net
