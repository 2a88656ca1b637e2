// Messages over UCX, whatever it has on this machine.
#include "ext_net/ends.h"
#include "ucx/ucx_network.h"

namespace falcon::net::test {
namespace {

class Ucx : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(over_.devices()); }

  const Setting interface_{"NCCL_SOCKET_IFNAME", "lo"};
  Network& over_ = network();
};

TEST_F(Ucx, MessagesOfEverySizeArriveWhole) {
  Ends ends(over_);
  unsigned seed = 0;
  for (const std::size_t size : {0ul, 1ul, 8191ul, 65536ul, 1000003ul, 20000001ul})
    ASSERT_NO_FATAL_FAILURE(expectArrivesWhole(ends, size, ++seed));
}

TEST_F(Ucx, AMessageThatIsTooLongIsToldApart) {
  Ends ends(over_);
  Bytes sent(100), room(50);
  const auto receive = ends.receiver->start(room.data(), room.size(), nullptr);
  ASSERT_TRUE(ends.sender->start(sent.data(), sent.size(), nullptr));
  const auto got = finish(*receive);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::invalidUsage) << got.error().message();
}

TEST_F(Ucx, AConnectionThatIsLostIsARemoteErrorWithinFiveSeconds) {
  Ends ends(over_);
  Bytes room(100);
  const auto receive = ends.receiver->start(room.data(), room.size(), nullptr);
  ends.sender.reset();
  const auto got = finish(*receive, Seconds(5));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::remote) << got.error().message();
}

TEST_F(Ucx, MessagesThatAreStillUnderWayMayBeGivenUp) {
  Bytes sent(50'000'000), received(50'000'000);
  {
    Ends ends(over_);
    ASSERT_TRUE(*ends.receiver->start(received.data(), received.size(), nullptr));
    ASSERT_TRUE(*ends.sender->start(sent.data(), sent.size(), nullptr));
  }
  const Bytes before = received;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(before, received);
}

TEST_F(Ucx, WhoDoesNotKnowTheSecretIsNotLetIn) {
  HandleBytes handle;
  const auto listener = over_.listen(0, handle.get());
  ASSERT_TRUE(listener);
  auto known = *readHandle(handle.get());
  known.secret.fill(std::byte{1});
  HandleBytes wrong;
  write(known, wrong.get());
  const auto error = whyNotConnected(over_, wrong.get(), [&] { EXPECT_FALSE(*(*listener)->accept()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::remote);
  EXPECT_NE(error->message().find("does not know the secret"), std::string::npos) << error->message();
}

TEST_F(Ucx, AListenerThatIsGoneIsAnError) {
  HandleBytes handle;
  over_.listen(0, handle.get())->reset();
  const auto error = whyNotConnected(over_, handle.get());
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::remote) << error->message();
}

TEST_F(Ucx, AHandleOfAnotherPluginIsRefused) {
  HandleBytes zeros;
  const auto made = over_.connect(0, zeros.get());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::invalidArgument);
}

}  // namespace
}  // namespace falcon::net::test
