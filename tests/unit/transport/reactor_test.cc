#include "transport/reactor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include "harness/doorman.h"
#include "harness/fork_alone.h"
#include "harness/reserved_port.h"
#include "transport/connect.h"
#include "transport/descriptor_limit.h"

namespace falcon::transport {
namespace {

SocketAddress loopback() {
  return *SocketAddress::parse("127.0.0.1:0");
}
std::shared_ptr<Reactor> reactor() {
  return *makeReactor(loopback());
}

Secret secretWith(int value) {
  Secret secret{};
  secret[0] = static_cast<std::byte>(value);
  return secret;
}

Hello helloOf(std::uint64_t key, int secret = 1, std::string payload = "") {
  return {Purpose::data, key, secretWith(secret), 3, std::move(payload)};
}

/// Collects what handlers deliver.
template <class Item>
class Mailbox {
 public:
  void put(Item item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    changed_.notify_all();
  }
  std::optional<Item> take(Nanoseconds limit = 60s) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, limit, [&] { return !items_.empty(); })) return std::nullopt;
    Item item = std::move(items_.front());
    items_.erase(items_.begin());
    return item;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Item> items_;
};

/// A socket without manners.
FileDescriptor rawConnection(const SocketAddress& to) {
  FileDescriptor raw(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(raw.get(), to.get(), to.length()), 0);
  return raw;
}

/// Proves over it that it may come.
void greet(const FileDescriptor& socket, const Hello& hello, const SocketAddress& to) {
  Greeting greeting(hello);
  ASSERT_TRUE(greeting.open(socket.get(), to));
  auto progress = Greeting::Progress::incomplete;
  while (progress == Greeting::Progress::incomplete) {
    pollfd entry{socket.get(), POLLIN, 0};
    ASSERT_EQ(poll(&entry, 1, 60'000), 1);
    progress = greeting.read(socket.get());
  }
  ASSERT_EQ(progress, Greeting::Progress::complete);
}

/// Whether the other side closes within the limit.
bool closedWithin(const FileDescriptor& socket, Nanoseconds limit) {
  pollfd entry{socket.get(), POLLIN, 0};
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  if (poll(&entry, 1, static_cast<int>(milliseconds)) <= 0) return false;
  char byte;
  return recv(socket.get(), &byte, 1, 0) <= 0;
}

std::ptrdiff_t count(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

TEST(Reactor, HandsAConnectionToWhomItIsForAndLeavesTheBytesAfterTheHello) {
  const auto server = reactor();
  Mailbox<std::pair<FileDescriptor, Hello>> arrived;
  server->expect(Purpose::data, 7, secretWith(1), [&](FileDescriptor socket, const Hello& hello) {
    arrived.put({std::move(socket), hello});
  });
  const auto client = connectWithHello({}, server->address(), helloOf(7, 1, std::string(4096, 'p')), 60s);
  ASSERT_TRUE(client);
  ASSERT_EQ(send(client->get(), "after", 5, 0), 5);
  auto got = arrived.take();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->second.from, 3);
  EXPECT_EQ(got->second.payload, std::string(4096, 'p'));
  pollfd entry{got->first.get(), POLLIN, 0};
  ASSERT_EQ(poll(&entry, 1, 60'000), 1);
  char bytes[8];
  EXPECT_EQ(recv(got->first.get(), bytes, sizeof bytes, 0), 5);
}

TEST(Reactor, KeepsEarlyConnectionsUntilSomebodyExpectsThem) {
  const auto server = reactor();
  std::vector<std::thread> clients;
  for (int i = 0; i < 20; ++i)
    clients.emplace_back([&, i] { EXPECT_TRUE(connectWithHello({}, server->address(), helloOf(i % 2), 60s)); });
  std::this_thread::sleep_for(100ms);
  Mailbox<int> arrived;
  for (int key : {0, 1}) {
    server->expect(Purpose::data, key, secretWith(1), [&, key](FileDescriptor, const Hello&) { arrived.put(key); });
    for (int i = 0; i < 10; ++i) EXPECT_EQ(arrived.take(), key);
  }
  for (std::thread& client : clients) client.join();
}

TEST(Reactor, WhoIsTurnedAwayComesAgain) {
  const auto server = reactor();
  Mailbox<int> arrived;
  server->expect(Purpose::data, 7, secretWith(1), [&](FileDescriptor, const Hello&) { arrived.put(1); });
  const falcon::test::Doorman door(server->address(), 3);
  const auto socket = connectWithHello({}, door.address(), helloOf(7), 60s);
  ASSERT_TRUE(socket) << socket.error().message();
  EXPECT_TRUE(arrived.take());
  EXPECT_EQ(door.left(), 0);
}

TEST(Reactor, WhoHaveDifferentSecretsDoNotConnectEarlyOrNot) {
  const auto server = reactor();
  Mailbox<int> arrived;
  std::thread early([&] {
    const auto socket = connectWithHello({}, server->address(), helloOf(7, 2), 60s);
    ASSERT_FALSE(socket);
    EXPECT_EQ(socket.error().code(), ErrorCode::invalidUsage);
  });
  std::this_thread::sleep_for(50ms);
  server->expect(Purpose::data, 7, secretWith(1), [&](FileDescriptor, const Hello&) { arrived.put(1); });
  early.join();
  const auto late = connectWithHello({}, server->address(), helloOf(7, 2), 60s);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::invalidUsage);
  EXPECT_THAT(late.error().message(), testing::HasSubstr("does not know the secret"));
  EXPECT_FALSE(arrived.take(0s));
}

TEST(Reactor, DropsStrangersAtTheFirstWrongByteAndServesOthersMeanwhile) {
  const auto server = reactor();
  Mailbox<int> arrived;
  server->expect(Purpose::data, 7, secretWith(1), [&](FileDescriptor, const Hello&) { arrived.put(1); });
  const std::string good = encodeOpening(Purpose::data, 7, {});
  auto badPurpose = good;
  badPurpose[8] = 99;
  const std::string badLength = good + std::string(4, '\x7f');
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(1, 'x'), good.substr(0, 7) + "?",
                                   badLength, badPurpose, std::string(100000, '\0')}) {
    const auto stranger = rawConnection(server->address());
    send(stranger.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    char challenge[72];
    if (bytes == badLength) recv(stranger.get(), challenge, sizeof challenge, MSG_WAITALL);
    EXPECT_TRUE(closedWithin(stranger, 30s)) << bytes.substr(0, 10);  // sooner than the limit for slow ones
  }
  const auto silent = rawConnection(server->address());
  const auto half = rawConnection(server->address());
  send(half.get(), good.data(), good.size() / 2, 0);
  ASSERT_TRUE(connectWithHello({}, server->address(), helloOf(7), 60s));
  EXPECT_TRUE(arrived.take());
}

// On a busy machine a peer may get no processor for long, right between connecting and its first byte.
TEST(Reactor, LetsInWhoSaysLateWhoItIs) {
  const auto server = reactor();
  Mailbox<int> arrived;
  server->expect(Purpose::data, 7, secretWith(1), [&](FileDescriptor, const Hello&) { arrived.put(1); });
  const auto late = rawConnection(server->address());
  EXPECT_FALSE(closedWithin(late, 8s));
  greet(late, helloOf(7), server->address());
  EXPECT_TRUE(arrived.take());
}

// As when 64 ranks of one process turn to each other: 4000 newcomers.
TEST(Reactor, LetsACrowdInThatFillsTheDoorway) {
  constexpr int crowd = 1100;  // more than are let in before they have said who they are
  if (const auto room = reserveDescriptors(2 * crowd + 100, "a test"); !room) GTEST_SKIP() << room.error().message();
  const auto server = reactor();
  Mailbox<int> arrived;
  server->expect(Purpose::data, 7, secretWith(1), [&](FileDescriptor, const Hello&) { arrived.put(1); });
  std::vector<FileDescriptor> newcomers;
  for (int i = 0; i < crowd; ++i) newcomers.push_back(rawConnection(server->address()));
  for (const FileDescriptor& newcomer : newcomers) greet(newcomer, helloOf(7), server->address());
  for (int i = 0; i < crowd; ++i) ASSERT_TRUE(arrived.take()) << "number " << i;
}

TEST(Reactor, ReadsAGreetingThatComesByteByByte) {
  const auto server = reactor();
  Mailbox<std::string> arrived;
  server->expect(Purpose::data, 7, secretWith(1),
                 [&](FileDescriptor, const Hello& hello) { arrived.put(hello.payload); });
  const auto slow = rawConnection(server->address());
  const auto say = [&](const std::string& bytes) {
    for (const char byte : bytes) {
      ASSERT_EQ(send(slow.get(), &byte, 1, 0), 1);
      std::this_thread::sleep_for(1ms);
    }
  };
  say(encodeOpening(Purpose::data, 7, {}));
  char challenge[72];
  ASSERT_EQ(recv(slow.get(), challenge, sizeof challenge, MSG_WAITALL), 72);
  Nonce theirs;
  std::memcpy(theirs.data(), challenge + 8, theirs.size());
  say(encodeProof(helloOf(7, 1, "slowly"), {}, theirs));
  EXPECT_EQ(arrived.take(), "slowly");
}

TEST(Reactor, RetriesRefusedConnections) {
  const falcon::test::ReservedPort port;
  const SocketAddress address = *SocketAddress::parse(port.text());
  std::shared_ptr<Reactor> server;
  std::thread later([&] {
    std::this_thread::sleep_for(300ms);
    server = *makeReactor(address);
    server->expect(Purpose::data, 1, secretWith(1), [](FileDescriptor, const Hello&) {});
  });
  EXPECT_TRUE(connectWithHello(loopback(), address, helloOf(1), 60s));
  later.join();
}

TEST(Reactor, NamesTheAddressThatCannotBeReached) {
  const falcon::test::ReservedPort port;
  const SocketAddress address = *SocketAddress::parse(port.text());
  const auto client = connectWithHello({}, address, helloOf(1), 50ms);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code(), ErrorCode::remote);
  EXPECT_THAT(client.error().message(), testing::HasSubstr(address.text()));
}

TEST(Reactor, AHandlerDoesNotRunAfterUnwatchReturned) {
  const auto server = reactor();
  for (int round = 0; round < 200; ++round) {
    FileDescriptor event(eventfd(1, EFD_CLOEXEC));  // stays readable: the handler runs again and again
    std::atomic<bool> gone{false}, ranAfter{false}, ran{false};
    server->watch(event.get(), POLLIN, [&](short) {
      ran = true;
      if (gone) ranAfter = true;
    });
    while (!ran) std::this_thread::yield();
    server->unwatch(event.get());
    gone = true;
    EXPECT_FALSE(ranAfter);
  }
}

TEST(Reactor, AHandlerMayUnwatchItselfAndWatchAgain) {
  const auto server = reactor();
  FileDescriptor event(eventfd(1, EFD_CLOEXEC));
  Mailbox<int> calls;
  server->watch(event.get(), POLLIN, [&](short) {
    server->unwatch(event.get());
    calls.put(1);
    server->watch(event.get(), POLLIN, [&](short) {
      server->unwatch(event.get());
      calls.put(2);
    });
  });
  EXPECT_EQ(calls.take(), 1);
  EXPECT_EQ(calls.take(), 2);
  EXPECT_FALSE(calls.take(50ms));
}

TEST(Reactor, MayBeLetGoFromItsOwnThread) {
  auto server = reactor();
  Mailbox<int> done;
  auto* raw = server.get();
  raw->post([&done, server = std::move(server)]() mutable {
    server.reset();
    done.put(1);
  });
  EXPECT_TRUE(done.take());
}

/// Waits until no other thread is left: one that was joined may be seen in /proc a moment longer.
bool isAlone() {
  for (int i = 0; i < 6000 && falcon::test::threadsBesidesThis() > 0; ++i) std::this_thread::sleep_for(10ms);
  return falcon::test::threadsBesidesThis() == 0;
}

TEST(Reactor, LeaksNeitherThreadsNorDescriptors) {
  { const auto warm = reactor(); }
  ASSERT_TRUE(isAlone());
  const auto descriptors = count("/proc/self/fd");
  for (int i = 0; i < 30; ++i) {
    const auto server = reactor();
    server->expect(Purpose::data, 1, secretWith(1), [](FileDescriptor, const Hello&) {});
    const auto known = connectWithHello({}, server->address(), helloOf(1), 60s);
    const auto early = rawConnection(server->address());
    const std::string opening = encodeOpening(Purpose::data, 2, {});
    send(early.get(), opening.data(), opening.size(), MSG_NOSIGNAL);
    const auto silent = rawConnection(server->address());
  }
  EXPECT_TRUE(isAlone());
  EXPECT_EQ(count("/proc/self/fd"), descriptors);
}

TEST(ProcessReactor, IsSharedAndEndsWithItsLastUser) {
  auto one = *processReactor();
  auto other = *processReactor();
  EXPECT_EQ(one, other);
  const auto address = one->address();
  one.reset();
  other.reset();
  EXPECT_FALSE(connectWithHello({}, address, helloOf(1), 1ms));
}

int statusOf(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(ProcessReactor, AForkedChildGetsItsOwnAndMayDropTheParents) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "forks of a process with threads are beyond the thread sanitizer";
#endif
  auto parents = *processReactor();
  const pid_t child = falcon::test::forkBesideSleepers();
  if (child == 0) {
    auto own = processReactor();
    if (!own || *own == parents) _exit(1);
    parents.reset();
    (*own)->expect(Purpose::data, 5, secretWith(1), [](FileDescriptor, const Hello&) {});
    if (!connectWithHello({}, (*own)->address(), helloOf(5), 60s)) _exit(2);
    own->reset();
    _exit(0);
  }
  EXPECT_EQ(statusOf(child), 0);
  parents->expect(Purpose::data, 5, secretWith(1), [](FileDescriptor, const Hello&) {});
  EXPECT_TRUE(connectWithHello({}, parents->address(), helloOf(5), 60s));  // the parent's still works
}

TEST(ProcessReactor, AChildDoesNotKeepItsParentsSocketsOpen) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "forks of a process with threads are beyond the thread sanitizer";
#endif
  const auto server = reactor();
  Mailbox<FileDescriptor> arrived;
  server->expect(Purpose::data, 7, secretWith(1),
                 [&](FileDescriptor socket, const Hello&) { arrived.put(std::move(socket)); });
  auto client = connectWithHello({}, server->address(), helloOf(7), 60s);
  ASSERT_TRUE(client);
  auto accepted = arrived.take();
  ASSERT_TRUE(accepted);
  int hold[2];
  ASSERT_EQ(pipe(hold), 0);
  const pid_t child = falcon::test::forkBesideSleepers();
  if (child == 0) {
    ::close(hold[1]);
    char byte;
    _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);  // lives until the parent closes the pipe
  }
  accepted.reset();
  EXPECT_TRUE(closedWithin(*client, 60s));
  ::close(hold[1]);
  ::close(hold[0]);
  EXPECT_EQ(statusOf(child), 0);
}

TEST(ProcessReactor, AProcessThatNeverLetsGoExitsCleanly) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "it leaks on purpose, and the address sanitizer turns that into an exit code";
#endif
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "forks of a process with threads are beyond the thread sanitizer";
#endif
  const pid_t child = fork();
  if (child == 0) {
    static std::shared_ptr<Reactor> keptForever = *processReactor();
    static auto* leaked = new std::shared_ptr<Reactor>(reactor());
    (*leaked)->post([] {});
    exit(0);
  }
  for (int i = 0; i < 600; ++i) {
    int status = -1;
    if (waitpid(child, &status, WNOHANG) == child) {
      EXPECT_EQ(status, 0);
      return;
    }
    std::this_thread::sleep_for(100ms);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  FAIL() << "the process hangs at exit";
}

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(InterfaceAddress, FollowsTheRulesOfTheInterfaceName) {
  for (const char* rule : {"lo", "=lo", "nosuch,lo", "=nosuch,lo"}) {
    const Environment variable("NCCL_SOCKET_IFNAME", rule);
    const auto address = chooseInterfaceAddress();
    ASSERT_TRUE(address) << rule;
    EXPECT_EQ(address->host(), "127.0.0.1") << rule;
  }
  for (const char* rule : {"nosuch", "=l"}) {
    const Environment variable("NCCL_SOCKET_IFNAME", rule);
    const auto address = chooseInterfaceAddress();
    ASSERT_FALSE(address) << rule;
    EXPECT_EQ(address.error().code(), ErrorCode::invalidUsage);
    EXPECT_THAT(address.error().message(),
                testing::AllOf(testing::HasSubstr(rule), testing::HasSubstr("lo 127.0.0.1")));
  }
  const Environment variable("NCCL_SOCKET_IFNAME", "^lo");
  const auto address = chooseInterfaceAddress();
  if (address) {
    EXPECT_NE(address->host(), "127.0.0.1");
  }
}

TEST(InterfaceAddress, HasTheWantedFamily) {
  const Environment interface("NCCL_SOCKET_IFNAME", "lo");
  for (const auto& [family, host] : {std::pair{"AF_INET", "127.0.0.1"}, {"AF_INET6", "::1"}}) {
    if (std::string(family) == "AF_INET6" && !std::filesystem::exists("/proc/net/if_inet6")) continue;
    const Environment wanted("NCCL_SOCKET_FAMILY", family);
    const auto address = chooseInterfaceAddress();
    ASSERT_TRUE(address) << family;
    EXPECT_EQ(address->host(), host);
  }
}

}  // namespace
}  // namespace falcon::transport
