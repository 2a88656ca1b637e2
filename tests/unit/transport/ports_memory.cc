// Shared segments, rings and frames: also with a peer that writes nonsense.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstring>

#include "transport/chunk_ring.h"
#include "transport/shared_segment.h"
#include "transport/socket_port.h"

namespace falcon::transport::test {
namespace {

TEST(SharedSegment, IsSeenThroughItsNameAlsoByAnotherProcess) {
  auto made = SharedSegment::create(10000);
  ASSERT_TRUE(made);
  made->memory()[9999] = std::byte{5};
  const std::string name = made->name();
  const pid_t child = fork();
  if (child == 0) {
    auto opened = SharedSegment::open(name, 10000);
    if (!opened || opened->memory()[9999] != std::byte{5}) _exit(1);
    opened->memory()[0] = std::byte{6};
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(made->memory()[0], std::byte{6});
}

TEST(SharedSegment, CannotBeOpenedOnceItsNameIsDropped) {
  auto made = SharedSegment::create(4096);
  ASSERT_TRUE(made);
  const std::string name = made->name();
  auto opened = SharedSegment::open(name, 4096);
  ASSERT_TRUE(opened);
  made->dropName();
  EXPECT_EQ(made->name(), "");
  EXPECT_FALSE(SharedSegment::open(name, 4096));
  made->memory()[17] = std::byte{3};
  EXPECT_EQ(opened->memory()[17], std::byte{3});
}

TEST(SharedSegment, RefusesNamesThatAreNotOurs) {
  auto made = SharedSegment::create(4096);
  ASSERT_TRUE(made);
  std::string otherSecret = made->name();
  otherSecret.back() = otherSecret.back() == '0' ? '1' : '0';
  // A pipe whose number a name could hit: to open it would block or steal its bytes.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string pipeName = fmt::format("{}/{}/0123456789abcdef", getpid(), ends[0]);
  for (const std::string& name :
       {std::string(), otherSecret, pipeName, std::string("1/2"), std::string("../../etc/passwd"),
        std::string("-1/-1/0123456789abcdef"), made->name().substr(0, made->name().size() - 1)})
    EXPECT_FALSE(SharedSegment::open(name, 1)) << name;
  EXPECT_FALSE(SharedSegment::open(made->name(), 4097)) << "too short";
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(SharedSegment, TooMuchIsRefused) {
  const auto made = SharedSegment::create(SharedSegment::largestBytes + 1);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("2147483649 bytes"), std::string::npos) << made.error().message();
}

TEST(SharedSegment, WhereNoneCanBeHadTheErrorSaysWhy) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto made = SharedSegment::create(4096);
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("Too many open files"), std::string::npos) << made.error().message();
}

struct Ring {
  explicit Ring(std::size_t chunkBytes)
      : segment(std::move(*SharedSegment::createPrivate(ChunkRing::bytesFor(chunkBytes)))),
        producer(segment.memory(), chunkBytes),
        consumer(segment.memory(), chunkBytes),
        words(reinterpret_cast<ChunkRing*>(segment.memory().data())) {}
  SharedSegment segment;
  ChunkProducer producer;
  ChunkConsumer consumer;
  ChunkRing* words;
};

TEST(ChunkRing, GivesEightCreditsAndTakesThemBack) {
  Ring ring(512);
  std::uint64_t sent = 0, received = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i <= round % 8; ++i) {
      ASSERT_EQ(ring.producer.state(), RingState::ready);
      ring.producer.slot()[0] = static_cast<std::byte>(sent);
      ring.producer.publish(1 + sent++ % 512);
    }
    if (sent - received == 8) {
      ASSERT_EQ(ring.producer.state(), RingState::stuck);
    }
    while (ring.consumer.state() == RingState::ready) {
      ASSERT_EQ(ring.consumer.chunk().size(), 1 + received % 512);
      ASSERT_EQ(ring.consumer.chunk()[0], static_cast<std::byte>(received++));
      ring.consumer.release();
    }
    ASSERT_EQ(received, sent);
    ASSERT_EQ(ring.consumer.state(), RingState::stuck);
  }
}

TEST(ChunkRing, WhatWasSentBeforeClosingIsRead) {
  Ring ring(512);
  ring.producer.publish(3);
  ring.producer.close();
  ASSERT_EQ(ring.consumer.state(), RingState::ready);
  EXPECT_EQ(ring.consumer.chunk().size(), 3u);
  ring.consumer.release();
  EXPECT_EQ(ring.consumer.state(), RingState::closed);
  ring.consumer.close();
  EXPECT_EQ(ring.producer.state(), RingState::closed);
}

// One end may come, do its work and leave before the other looks at the memory for the first time.
TEST(ChunkRing, NeitherEndWipesWhatTheOtherWrote) {
  auto segment = *SharedSegment::createPrivate(ChunkRing::bytesFor(512));
  ChunkConsumer(segment.memory(), 512).close();
  EXPECT_EQ(ChunkProducer(segment.memory(), 512).state(), RingState::closed);
}

TEST(ChunkRing, NonsenseFromThePeerIsNoticed) {
  {
    Ring ring(512);
    ring.producer.publish(513);
    EXPECT_EQ(ring.consumer.state(), RingState::nonsense);
  }
  for (const std::uint64_t produced : {std::uint64_t{9}, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    Ring ring(512);
    ring.words->produced = produced;
    EXPECT_EQ(ring.consumer.state(), RingState::nonsense) << produced;
  }
  {
    Ring ring(512);
    ring.producer.publish(1);
    ASSERT_EQ(ring.consumer.state(), RingState::ready);
    ring.consumer.release();
    ring.words->produced = 0;  // backwards
    EXPECT_EQ(ring.consumer.state(), RingState::nonsense);
  }
  for (const std::uint64_t consumed : {std::uint64_t{9}, ~std::uint64_t{0}}) {
    Ring ring(512);
    for (int i = 0; i < 8; ++i) ring.producer.publish(1);
    ring.words->consumed = consumed;
    EXPECT_EQ(ring.producer.state(), RingState::nonsense) << consumed;
  }
}

/// A receiving port and the bare socket that feeds it.
struct Feed {
  Feed() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    feeder.reset(ends[0]);
    port = std::make_unique<SocketReceivePort>(std::make_shared<FileDescriptor>(ends[1]), "rank 5 (there)", 512);
  }
  void put(const void* bytes, std::size_t length) {
    EXPECT_EQ(send(feeder.get(), bytes, length, MSG_NOSIGNAL), static_cast<ssize_t>(length));
  }
  FileDescriptor feeder;
  std::unique_ptr<SocketReceivePort> port;
};

TEST(SocketReceivePort, TakesFramesByteByByte) {
  Feed feed;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const std::uint32_t length = number * 37 % 513;
    std::vector<char> frame(FrameHeader::frameBytes(length));
    const FrameHeader header{.length = length, .sequence = number};
    std::memcpy(frame.data(), &header, sizeof header);
    std::memset(frame.data() + sizeof header, static_cast<int>(number), length);
    for (std::size_t i = 0; i < frame.size(); ++i) {
      ASSERT_FALSE(*feed.port->ready());
      feed.put(&frame[i], 1);
    }
    ASSERT_TRUE(*feed.port->ready());
    ASSERT_EQ(feed.port->chunk().size(), length);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(feed.port->chunk().data()) % 16, 0u) << "reducers want it aligned";
    for (const std::byte byte : feed.port->chunk()) ASSERT_EQ(byte, static_cast<std::byte>(number));
    feed.port->release();
  }
}

TEST(SocketReceivePort, NonsenseIsARemoteErrorThatNamesThePeer) {
  for (const FrameHeader bad :
       {FrameHeader{.magic = 1}, FrameHeader{.length = 513}, FrameHeader{.length = ~0u}, FrameHeader{.sequence = 1}}) {
    Feed feed;
    feed.put(&bad, sizeof bad);
    const auto ready = feed.port->ready();
    ASSERT_FALSE(ready);
    EXPECT_EQ(ready.error().code(), ErrorCode::remote);
    EXPECT_NE(ready.error().message().find("rank 5"), std::string::npos);
    EXPECT_FALSE(feed.port->ready()) << "it stays broken";
  }
}

TEST(SocketReceivePort, EndOfFileIsAnErrorOnlyWhenBytesAreExpected) {
  Feed feed;
  const FrameHeader empty{};
  feed.put(&empty, sizeof empty);
  feed.feeder.reset();
  ASSERT_TRUE(feed.port->ready()) << "the last chunk came before the end";
  feed.port->release();
  EXPECT_FALSE(feed.port->ready());
}

}  // namespace
}  // namespace falcon::transport::test
