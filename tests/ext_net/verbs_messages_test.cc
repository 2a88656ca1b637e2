// Messages between two sound ends over verbs.
#include <numeric>

#include "ext_net/verbs_fixture.h"
#include "verbs/message_wire.h"

namespace falcon::net::test {
namespace {

constexpr std::size_t most = transport::net::mostRequests;

class VerbsMessages : public OverFakeVerbs {};

TEST_F(VerbsMessages, OfEverySizeArriveWhole) {
  unsigned seed = 0;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{24}, std::size_t{65536}, pieceBytes - 1,
                                 pieceBytes, pieceBytes + 1, 2 * pieceBytes, 3 * pieceBytes - 5, 9 * pieceBytes + 3})
    ASSERT_NO_FATAL_FAILURE(expectArrivesWhole(ends(), size, ++seed));
}

TEST_F(VerbsMessages, ArriveInReceivesThatWerePostedBeforeOrAfterTheSend) {
  Bytes sent = patternOf(1000, 1), received(1000);
  const Mark from(*ends().sender, sent), to(*ends().receiver, received);
  const auto send = ends().sender->start(sent.data(), sent.size(), from.get());
  std::size_t bytes = 0;
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(*(*send)->test(bytes)) << "nobody has asked for it";
  const auto receive = ends().receiver->start(received.data(), received.size(), to.get());
  ASSERT_TRUE(finish(*send) && finish(*receive));
  EXPECT_EQ(sent, received);
}

/// Several connections at a time, each with as many messages as it takes; the receivers lag behind by turns.
class Stream {
 public:
  Stream(VerbsNetwork& over, int from, int to, unsigned seed) : ends_(over, to, from) {
    for (unsigned i = 0; i < count; ++i) {
      sent_.push_back(patternOf((std::size_t{i} * 997 + seed * 31) % 20'000, seed + i));
      received_.emplace_back(20'000);
      sendMarks_.push_back(std::make_unique<Mark>(*ends_.sender, sent_.back()));
      receiveMarks_.push_back(std::make_unique<Mark>(*ends_.receiver, received_.back()));
    }
  }
  bool turn(bool receives) {
    while (sends_.size() < count) {
      const std::size_t i = sends_.size();
      Request* const request = *ends_.sender->start(sent_[i].data(), sent_[i].size(), sendMarks_[i]->get());
      if (!request) break;
      sends_.push_back(request);
    }
    mostAtATime_ = std::max(mostAtATime_, sends_.size() - sentCount_);
    while (receives && receives_.size() < count) {
      const std::size_t i = receives_.size();
      Request* const request =
          *ends_.receiver->start(received_[i].data(), received_[i].size(), receiveMarks_[i]->get());
      if (!request) break;
      receives_.push_back(request);
    }
    std::size_t bytes = 0;
    while (sentCount_ < sends_.size() && *sends_[sentCount_]->test(bytes)) ++sentCount_;
    while (receivedCount_ < receives_.size() && *receives_[receivedCount_]->test(bytes))
      received_[receivedCount_++].resize(bytes);
    return sentCount_ == count && receivedCount_ == count;
  }
  bool isAllThere() const { return sent_ == received_; }
  std::size_t mostAtATime() const { return mostAtATime_; }

 private:
  static constexpr std::size_t count = 300;
  Ends ends_;
  std::vector<Bytes> sent_, received_;
  std::vector<std::unique_ptr<Mark>> sendMarks_, receiveMarks_;
  std::vector<Request*> sends_, receives_;
  std::size_t sentCount_ = 0, receivedCount_ = 0, mostAtATime_ = 0;
};

TEST_F(VerbsMessages, AreTakenInTheirOrderHoweverManyConnectionsAreBusy) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (unsigned i = 0; i < 6; ++i)
    streams.push_back(std::make_unique<Stream>(over(), static_cast<int>(i % 2), static_cast<int>(i / 2 % 2), i));
  std::mt19937 random(7);
  ASSERT_TRUE(waitFor(
      [&] {
        bool isOver = true;
        for (auto& stream : streams) isOver = stream->turn(random() % 2 == 0) && isOver;
        return isOver;
      },
      Seconds(60)));
  for (auto& stream : streams) {
    EXPECT_TRUE(stream->isAllThere());
    EXPECT_EQ(stream->mostAtATime(), most);
  }
}

TEST_F(VerbsMessages, AreAtMost32AtATime) {
  Bytes data(64);
  const Mark from(*ends().sender, data), to(*ends().receiver, data);
  for (Connection* end : {ends().sender.get(), ends().receiver.get()}) {
    void* const mark = end == ends().sender.get() ? from.get() : to.get();
    for (std::size_t i = 0; i < most; ++i) ASSERT_TRUE(*end->start(data.data(), 1, mark)) << i;
    const auto more = end->start(data.data(), 1, mark);
    ASSERT_TRUE(more);
    EXPECT_EQ(*more, nullptr);
  }
}

TEST_F(VerbsMessages, MakeRoomForOthersAlsoWhereNobodyTests) {
  // The receiver's adverts are done, and nobody has polled for that: start() does.
  Bytes sent(64), received(64);
  const Mark from(*ends().sender, sent), to(*ends().receiver, received);
  for (int round = 0; round < 3; ++round) {
    std::vector<Request*> receives, sends;
    for (std::size_t i = 0; i < most; ++i) {
      Request* receive = nullptr;
      ASSERT_TRUE(waitFor([&] { return (receive = *ends().receiver->start(received.data(), 64, to.get())); }));
      receives.push_back(receive);
      sends.push_back(*ends().sender->start(sent.data(), 64, from.get()));
      ASSERT_TRUE(sends.back());
    }
    for (std::size_t i = 0; i < most; ++i) ASSERT_TRUE(finish(sends[i]) && finish(receives[i]));
  }
}

TEST_F(VerbsMessages, ThatAreTooLongAreToldApartAtBothEnds) {
  Bytes sent(100), received(50);
  const Mark from(*ends().sender, sent), to(*ends().receiver, received);
  const auto receive = ends().receiver->start(received.data(), received.size(), to.get());
  const auto send = ends().sender->start(sent.data(), sent.size(), from.get());
  for (Request* request : {*receive, *send}) {
    const auto got = finish(request);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), ErrorCode::invalidUsage) << got.error().message();
  }
  EXPECT_EQ(received, Bytes(50));
  const auto again = ends().sender->start(sent.data(), 1, from.get());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), ErrorCode::invalidUsage) << "the first error stays";
}

TEST_F(VerbsMessages, MayBeLongerThanAReceiveOfAnEarlierOne) {
  Bytes sent(100), received(100);
  const Mark from(*ends().sender, sent), to(*ends().receiver, received);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}}) {
    const auto receive = ends().receiver->start(received.data(), bytes, to.get());
    const auto send = ends().sender->start(sent.data(), bytes, from.get());
    ASSERT_TRUE(finish(*send) && finish(*receive));
  }
}

TEST_F(VerbsMessages, MustLieInRegisteredMemory) {
  Bytes data(100);
  const Mark from(*ends().sender, data);
  for (const auto& got :
       {ends().sender->start(data.data(), 100, nullptr), ends().sender->start(data.data() + 1, 100, from.get())}) {
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), ErrorCode::invalidUsage) << got.error().message();
  }
  EXPECT_TRUE(ends().sender->start(nullptr, 0, nullptr)) << "no bytes need none";
}

TEST_F(VerbsMessages, ThatAreStillUnderWayMayBeGivenUp) {
  Bytes sent(1000, std::byte{5}), received(1000);
  {
    auto to = std::make_unique<Mark>(*ends().receiver, received), from = std::make_unique<Mark>(*ends().sender, sent);
    fake_.hold(true);
    ASSERT_TRUE(*ends().receiver->start(received.data(), received.size(), to->get()));
    ASSERT_TRUE(*ends().sender->start(sent.data(), sent.size(), from->get()));
  }
  ends_.reset();
  fake_.hold(false);
  Ends others(over(), 0, 1);
  ASSERT_NO_FATAL_FAILURE(expectArrivesWhole(others, 100, 1));
  EXPECT_EQ(received, Bytes(1000)) << "nobody writes there any more";
}

class VerbsGpu : public VerbsMessages {
 protected:
  static constexpr int gpu = 2;

  void* registerGpu(Connection& end, Bytes& data) {
    const auto made = end.registerDmaBuffer(data.data(), data.size(), gpu, 4096, 7);
    EXPECT_TRUE(made);
    return *made;
  }
};

TEST_F(VerbsGpu, MemoryIsReachedWhereTheDriverKnowsDmaBuffers) {
  EXPECT_EQ((*over().devices())[0].memory, 1 | 4);
  over_.reset();
  fake_.fail("registerDmaBuffer", EOPNOTSUPP, -1);
  EXPECT_EQ((*over().devices())[0].memory, 1);
}

TEST_F(VerbsGpu, SeesWhatHasComeOnceItIsFlushed) {
  Bytes sent = patternOf(1000, 3), received(1000);
  const Mark from(*ends().sender, sent);
  void* const to = registerGpu(*ends().receiver, received);
  for (int round = 0; round < 40; ++round) {  // more than there are at a time
    received.assign(1000, std::byte{0});
    const auto receive = ends().receiver->start(received.data(), received.size(), to);
    const auto send = ends().sender->start(sent.data(), sent.size(), from.get());
    ASSERT_TRUE(finish(*send) && finish(*receive));
    ASSERT_NE(sent, received) << "the device does not hold them back: this test shows nothing";
    const auto flush = ends().receiver->flush(received.data(), received.size(), to);
    ASSERT_TRUE(flush && *flush);
    const auto flushed = finish(*flush);
    ASSERT_TRUE(flushed);
    EXPECT_EQ(sent, received);
  }
  ends().receiver->deregisterMemory(to);
}

TEST_F(VerbsGpu, MemoryOfTheHostNeedsNoFlush) {
  Bytes received(10);
  const Mark to(*ends().receiver, received);
  EXPECT_EQ(*ends().receiver->flush(received.data(), 10, to.get()), nullptr);
  void* const gpus = registerGpu(*ends().receiver, received);
  EXPECT_EQ(*ends().receiver->flush(received.data(), 0, gpus), nullptr) << "nor do no bytes";
  ends().receiver->deregisterMemory(gpus);
}

TEST_F(VerbsGpu, AFlushThatCannotBeIsAnError) {
  Bytes received(10);
  void* const to = registerGpu(*ends().receiver, received);
  fake_.fail("createQueuePair", ENOMEM);
  const auto flush = ends().receiver->flush(received.data(), 10, to);
  ASSERT_FALSE(flush);
  EXPECT_EQ(flush.error().code(), ErrorCode::system);
  ends().receiver->deregisterMemory(to);
}

TEST_F(VerbsGpu, MemoryIsNotRegisteredByItsAddress) {
  Bytes data(10);
  EXPECT_FALSE(ends().sender->registerMemory(data.data(), data.size(), gpu));
}

}  // namespace
}  // namespace falcon::net::test
