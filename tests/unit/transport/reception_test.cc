// How long who comes in may be silent, counted in ticks that the test gives: nothing here waits for a clock.
#include "transport/reception.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

#include "base/system_error.h"
#include "transport/descriptor_limit.h"

namespace falcon::transport {
namespace {

constexpr int fewTicks = 10;         // enough for a newcomer to lose its place, where another needs it
constexpr std::size_t crowd = 1024;  // as many as are let in before they have said who they are

FileDescriptor listener(SocketAddress& address) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const SocketAddress wanted = *SocketAddress::parse("127.0.0.1:0");
  EXPECT_EQ(bind(socket.get(), wanted.get(), wanted.length()), 0);
  EXPECT_EQ(listen(socket.get(), 4096), 0);
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &length);
  address = SocketAddress(reinterpret_cast<sockaddr*>(&name), length);
  return socket;
}

FileDescriptor newSocket() {
  return FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

bool hungUp(const FileDescriptor& socket) {
  char byte;
  const auto got = recv(socket.get(), &byte, 1, MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN);
}

/// A reception on a loop of its own, and those who come to it.
class Door {
 public:
  Door() : reception_(std::make_shared<Reception>(loop_, listener(address_))), thread_([this] { loop_->run(); }) {
    reception_->open();
  }
  ~Door() {
    reception_->close();
    loop_->stop();
    thread_.join();
  }

  /// On the loop's thread; returns when it is done.
  void run(const std::function<void()>& work) {
    std::promise<void> done;
    loop_->post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  void tick(int times) {
    for (int i = 0; i < times; ++i) reception_->tick();
  }
  void pass(int ticks) {
    run([&] { tick(ticks); });
  }

  FileDescriptor come() const {
    FileDescriptor visitor = newSocket();
    connectOf(visitor);
    return visitor;
  }
  FileDescriptor comeFrom(const char* host) const {
    FileDescriptor visitor = newSocket();
    const SocketAddress source = *SocketAddress::parse(host);
    EXPECT_EQ(bind(visitor.get(), source.get(), source.length()), 0);
    connectOf(visitor);
    return visitor;
  }
  void connectOf(const FileDescriptor& visitor) const {
    EXPECT_EQ(connect(visitor.get(), address_.get(), address_.length()), 0);
  }
  /// Says for whom it comes; unless nobody expects that, it is then challenged.
  static void open(const FileDescriptor& visitor, std::uint64_t key = expectedKey) {
    const std::string opening = encodeOpening(Purpose::data, key, {});
    EXPECT_EQ(send(visitor.get(), opening.data(), opening.size(), MSG_NOSIGNAL), static_cast<ssize_t>(opening.size()));
  }
  /// Answers the challenge.
  static void prove(const FileDescriptor& visitor, const Secret& secret = {}) {
    const std::string size = encodeChallenge({}, {}, {});
    std::string challenge(size.size(), ' ');
    ASSERT_EQ(recv(visitor.get(), challenge.data(), challenge.size(), MSG_WAITALL),
              static_cast<ssize_t>(challenge.size()));
    Nonce theirs;
    std::memcpy(theirs.data(), challenge.data() + 8, theirs.size());
    const std::string proof = encodeProof({Purpose::data, expectedKey, secret, 1, {}}, {}, theirs);
    EXPECT_EQ(send(visitor.get(), proof.data(), proof.size(), MSG_NOSIGNAL), static_cast<ssize_t>(proof.size()));
  }
  static void speak(const FileDescriptor& visitor) {
    open(visitor);
    prove(visitor);
  }

  void expect(std::uint64_t key = expectedKey) {
    reception_->expect(Purpose::data, key, {}, [this](FileDescriptor, const Hello&) { ++arrived_; });
  }
  /// Whether so many have been handed over in all, now or within a time that is only long where that is wrong.
  bool arrived(int count) const {
    for (int tries = 0; tries < 20'000 && arrived_ < count; ++tries) std::this_thread::sleep_for(1ms);
    return arrived_ == count;
  }
  /// Those who have come before are let in: connections are accepted in their order.
  void settle() {
    const int before = arrived_;
    speak(come());
    ASSERT_TRUE(arrived(before + 1));
  }

 private:
  static constexpr std::uint64_t expectedKey = 7;

  SocketAddress address_;
  std::atomic<int> arrived_{0};
  const std::shared_ptr<EventLoop> loop_ = *EventLoop::create();
  const std::shared_ptr<Reception> reception_;
  std::thread thread_;
};

// On a busy machine, or stopped, a peer may get no processor for long, right between connecting and its first byte.
TEST(Reception, ANewcomerMaySayWhoItIsLate) {
  Door door;
  door.expect();
  const auto late = door.come();
  door.settle();
  door.pass(60);
  EXPECT_FALSE(hungUp(late));
  Door::speak(late);
  EXPECT_TRUE(door.arrived(2));
}

TEST(Reception, WhoDoesNotProveItselfIsKeptForSixtyTicksInEachStage) {
  Door door;
  door.expect();
  const auto silent = door.come(), challenged = door.come();
  Door::open(challenged);
  door.settle();
  door.pass(60);
  EXPECT_FALSE(hungUp(silent));
  door.pass(2);
  EXPECT_TRUE(hungUp(silent));
  char challenge[72];
  EXPECT_EQ(recv(challenged.get(), challenge, sizeof challenge, MSG_WAITALL), 72);
  EXPECT_TRUE(hungUp(challenged));
}

TEST(Reception, OfWhoIsEarlyOnlySoManyAreKept) {
  if (const auto room = reserveDescriptors(2 * crowd + 100, "a test"); !room) GTEST_SKIP() << room.error().message();
  Door door;
  door.expect();
  std::vector<FileDescriptor> early;
  while (early.size() < crowd) {
    early.push_back(door.come());
    Door::open(early.back(), 8);
  }
  door.settle();
  for (const auto& each : early) EXPECT_FALSE(hungUp(each));
  const auto another = door.come();
  Door::open(another, 8);
  door.settle();
  EXPECT_EQ(std::count_if(early.begin(), early.end(), hungUp), 1);
  EXPECT_FALSE(hungUp(another));
}

// One host that fills the place with connections of no use crowds out its own, from the oldest on.
TEST(Reception, OfWhoIsEarlyTheOldestOfTheHostWithMostGivesWay) {
  if (const auto room = reserveDescriptors(2 * crowd + 100, "a test"); !room) GTEST_SKIP() << room.error().message();
  Door door;
  door.expect();
  const auto early = [&](const char* host) {
    FileDescriptor visitor = door.comeFrom(host);
    Door::open(visitor, 8);
    return visitor;
  };
  const auto quiet = early("127.0.0.9:0");
  door.settle();
  door.pass(1);
  std::vector<FileDescriptor> busy;
  for (int i = 0; i < 3; ++i) {
    busy.push_back(early("127.0.0.2:0"));
    door.settle();
    door.pass(1);
  }
  while (busy.size() < crowd - 1) busy.push_back(early("127.0.0.2:0"));
  door.settle();
  std::vector<FileDescriptor> others;
  for (std::ptrdiff_t come = 1; come <= 3; ++come) {
    others.push_back(early("127.0.0.3:0"));
    door.settle();
    EXPECT_EQ(std::count_if(busy.begin(), busy.begin() + come, hungUp), come) << "the oldest give way";
    EXPECT_EQ(std::count_if(busy.begin(), busy.end(), hungUp), come) << "one for each";
  }
  EXPECT_FALSE(hungUp(quiet)) << "the oldest of all, of another host";
  EXPECT_EQ(std::count_if(others.begin(), others.end(), hungUp), 0);
}

TEST(Reception, WhoIsSilentGivesItsPlaceToOthersWhereTheDoorwayIsFull) {
  if (const auto room = reserveDescriptors(2 * crowd + 100, "a test"); !room) GTEST_SKIP() << room.error().message();
  Door door;
  door.expect();
  const auto first = door.come();
  door.settle();
  door.pass(1);  // the first one has waited longer than the others
  std::vector<FileDescriptor> silent;
  while (silent.size() < crowd - 2) silent.push_back(door.come());
  door.settle();
  door.pass(fewTicks);
  EXPECT_FALSE(hungUp(first)) << "nobody needs its place";
  const auto filling = door.come();
  const auto last = door.come();
  Door::speak(last);
  EXPECT_TRUE(door.arrived(3));
  EXPECT_TRUE(hungUp(first));
  for (const auto& other : silent) EXPECT_FALSE(hungUp(other)) << "one place was enough";
}

// As long as the loop's thread gets no processor it hears nobody, and must not take that for silence.
TEST(Reception, WhoWasNotHeardInTimeDoesNotLoseItsPlace) {
  if (const auto room = reserveDescriptors(2 * crowd + 100, "a test"); !room) GTEST_SKIP() << room.error().message();
  Door door;
  door.expect();
  std::vector<FileDescriptor> visitors;
  while (visitors.size() < crowd - 1) visitors.push_back(door.come());
  door.settle();
  visitors.push_back(door.come());
  const auto waiting = door.come();  // before a full doorway
  door.run([&] {
    for (const auto& visitor : visitors) Door::open(visitor);
    Door::open(waiting);
    door.tick(fewTicks);
  });
  for (const auto& visitor : visitors) Door::prove(visitor);
  Door::prove(waiting);
  EXPECT_TRUE(door.arrived(1 + static_cast<int>(crowd) + 1));
}

TEST(Reception, WhoIsSilentGivesItsPlaceToOthersWhereDescriptorsAreShort) {
  Door door;
  door.expect();
  const auto silent = door.come();
  door.settle();
  door.pass(fewTicks);
  const auto visitor = newSocket();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(FileDescriptor(dup(visitor.get())).get());  // the lowest that is free
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  door.connectOf(visitor);
  Door::speak(visitor);
  const bool let = door.arrived(2);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(let);
  EXPECT_TRUE(hungUp(silent));
}

TEST(Reception, WhoIsNotExpectedIsKeptForSixtyTicks) {
  Door door;
  door.expect();
  const auto early = door.come();
  Door::open(early, 8);
  door.settle();
  door.pass(60);
  EXPECT_FALSE(hungUp(early));
  door.pass(2);
  EXPECT_TRUE(hungUp(early));
}

}  // namespace
}  // namespace falcon::transport
