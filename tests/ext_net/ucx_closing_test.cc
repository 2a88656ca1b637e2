// How connections over UCX are closed, in order and out of it.
#include <gmock/gmock.h>

#include "ext_net/ends.h"
#include "ucx/departures.h"
#include "ucx/ucx_network.h"

namespace falcon::net::test {
namespace {

class UcxClosing : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(over_.devices()); }
  /// No end stays behind.
  void TearDown() override {
    EXPECT_TRUE(waitFor([&] {
      Departures::instance().look();
      return Departures::instance().count() == 0;
    }));
  }
  /// Sends so many messages that the receiver has not asked for; the sender is told that they are done.
  static void sendAhead(Ends& ends, std::vector<Bytes>& messages) {
    for (Bytes& message : messages) {
      const auto send = ends.sender->start(message.data(), message.size(), nullptr);
      ASSERT_TRUE(send && *send);
      ASSERT_TRUE(finish(*send));
    }
  }
  static std::vector<Bytes> someMessages() {
    std::vector<Bytes> all;
    for (unsigned i = 0; i < 30; ++i) all.push_back(patternOf(i * 100, i));
    return all;
  }
  static Result<std::size_t> received(Ends& ends, Bytes& room) {
    const auto receive = ends.receiver->start(room.data(), room.size(), nullptr);
    if (!receive) return receive.error();
    return finish(*receive);
  }

  const Setting interface_{"NCCL_SOCKET_IFNAME", "lo"};
  UcxNetwork over_;
};

TEST_F(UcxClosing, LosesNothingThatTheReceiverHasNotTakenYet) {
  Ends ends(over_);
  auto messages = someMessages();
  ASSERT_NO_FATAL_FAILURE(sendAhead(ends, messages));
  ends.sender.reset();
  Bytes room(10'000);
  for (const Bytes& message : messages) {
    const auto got = received(ends, room);
    ASSERT_TRUE(got) << got.error().message();
    ASSERT_EQ(*got, message.size());
    EXPECT_TRUE(std::equal(message.begin(), message.end(), room.begin()));
  }
  const auto more = received(ends, room);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), ErrorCode::remote) << more.error().message();
}

TEST_F(UcxClosing, OfTheReceiverIsNoErrorOfWhatItHasTaken) {
  Ends ends(over_);
  for (const std::size_t size : {100ul, 10'000'000ul}) {
    Bytes sent = patternOf(size, 1), room(size);
    const auto send = ends.sender->start(sent.data(), size, nullptr);
    const auto receive = ends.receiver->start(room.data(), size, nullptr);
    // The sender moves only until the receiver has everything.
    std::size_t bytes = 0;
    bool isSent = false;
    ASSERT_TRUE(waitFor([&] {
      const bool isReceived = *(*receive)->test(bytes);
      if (!isReceived && !isSent) isSent = *(*send)->test(bytes);
      return isReceived;
    }));
    if (size > 100) ends.receiver.reset();
    if (!isSent) {
      const auto got = finish(*send);
      EXPECT_TRUE(got) << got.error().message();
    }
    EXPECT_EQ(sent, room);
  }
}

TEST_F(UcxClosing, IsAnErrorOfASenderWhoseMessageNobodyWillTake) {
  Ends ends(over_);
  ASSERT_NO_FATAL_FAILURE(expectArrivesWhole(ends, 100, 1));
  Bytes sent(10'000'000);
  const auto send = ends.sender->start(sent.data(), sent.size(), nullptr);
  ends.receiver.reset();
  const auto got = finish(*send, Seconds(5));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::remote);
  EXPECT_THAT(got.error().message(), testing::HasSubstr("closed"));
}

// Nobody asks for anything at the other ends meanwhile: each would be waited for in vain.
TEST_F(UcxClosing, OfManyTakesNoSecondEach) {
  constexpr int count = 20;
  for (const bool sendersFirst : {true, false}) {
    std::vector<std::unique_ptr<Ends>> all;
    for (int i = 0; i < count; ++i) {
      all.push_back(std::make_unique<Ends>(over_));
      ASSERT_NO_FATAL_FAILURE(expectArrivesWhole(*all.back(), 100'000, 1));
    }
    const auto begun = std::chrono::steady_clock::now();
    for (auto& ends : all) (sendersFirst ? ends->sender : ends->receiver).reset();
    for (auto& ends : all) (sendersFirst ? ends->receiver : ends->sender).reset();
    EXPECT_LT(Seconds(std::chrono::steady_clock::now() - begun).count(), count / 2);
  }
}

TEST_F(UcxClosing, BeforeAnythingWasSentLeavesNothingBehind) {
  {
    Ends ends(over_);
    ends.receiver.reset();
    ends.sender.reset();
  }
  EXPECT_EQ(Departures::instance().count(), 0u);
}

// With messages of which the receivers take none, for ever.
TEST_F(UcxClosing, IsBoundedWhereTheReceiversTakeNothing) {
  std::vector<std::unique_ptr<Ends>> all;
  for (int i = 0; i < 10; ++i) {
    all.push_back(std::make_unique<Ends>(over_));
    auto messages = someMessages();
    ASSERT_NO_FATAL_FAILURE(sendAhead(*all.back(), messages));
  }
  const auto begun = std::chrono::steady_clock::now();
  for (auto& ends : all) ends->sender.reset();
  EXPECT_LT(Seconds(std::chrono::steady_clock::now() - begun).count(), 5) << "a second each";
}

}  // namespace
}  // namespace falcon::net::test
