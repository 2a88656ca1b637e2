// Waiting: no ring is lost, and who waits leaves the processor to others.
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#include <poll.h>

#include "transport/doorbell.h"
#include "unit/transport/ports_world.h"

namespace falcon::transport::test {
namespace {

Nanoseconds now() {
  return SystemClock::instance().now();
}

Nanoseconds threadTime() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + Nanoseconds(used.tv_nsec);
}

// Two take turns; a lost ring would leave both asleep until the limit.
template <class Wait>
void takeTurns(int turns, Wait wait) {
  std::atomic<int> turn{0};
  std::atomic<Nanoseconds::rep> longest{0};
  const auto player = [&](int mine) {
    while (true) {
      const auto start = now();
      if (!wait([&] { return turn.load() >= turns || turn.load() % 2 == mine; })) return;
      longest = std::max(longest.load(), (now() - start).count());
      if (turn.load() >= turns) return;
      if (Nanoseconds(longest.load()) > 20s) turn = turns;  // one lost ring is enough
      // Long enough, now and then, that the other one has ceased to yield and sleeps, or is just about to.
      if (turn % 8 < 2) std::this_thread::sleep_for(std::chrono::microseconds(turn % 97));
      ++turn;
      ringOwnDoorbell();
    }
  };
  std::thread other(player, 1);
  player(0);
  other.join();
  EXPECT_GE(turn.load(), turns);
  EXPECT_LT(Nanoseconds(longest.load()), 20s) << "somebody slept until the limit: a ring was lost";
}

TEST(Doorbell, LosesNoRing) {
  Doorbell& bell = processDoorbell();
  takeTurns(20000, [&](auto mayGo) {
    while (true) {
      const auto ticket = bell.ticket();
      if (mayGo()) return true;
      bell.wait(ticket, 30s);
    }
  });
}

TEST(Waiter, LosesNoRingOfTheDoorbell) {
  const auto waiter = makeWaiter();  // one for both threads: it is safe from any
  const WaitSource source[] = {{.kind = WaitSource::Kind::doorbell}};
  takeTurns(20000, [&](auto mayGo) {
    while (true) {
      waiter->prepare();
      if (mayGo()) return true;
      waiter->wait(source, 30s);
    }
  });
}

// Deterministic: what rings between the ticket and the wait is not slept through, when the time to yield is over too.
TEST(Waiter, ReturnsAtOnceIfItRangSinceTheTicket) {
  const auto waiter = makeWaiter();
  const WaitSource source[] = {{.kind = WaitSource::Kind::doorbell}};
  waiter->prepare();
  waiter->wait(source, 5ms);
  for (int i = 0; i < 3; ++i) {
    waiter->prepare();
    ringOwnDoorbell();
    const auto start = now();
    waiter->wait(source, 30s);
    ASSERT_LT(now() - start, 20s) << "it slept until the limit";
  }
}

/// Waits for `mayGo`; every wait ends by a ring of the other process, or after the limit and is an error.
Status waitForRing(Waiter& waiter, const std::function<WaitSource()>& source, const std::function<bool()>& mayGo) {
  while (true) {
    waiter.prepare();
    if (mayGo()) return {};
    const WaitSource sources[] = {source()};
    const auto start = now();
    waiter.wait(sources, 30s);
    if (now() - start > 20s) return Error::internal("a ring was lost");
  }
}

/// Rank 0 sends, rank 1 receives (and the other way round if `echo`), with pauses so that both have to sleep.
Status exchange(Rank rank, Ports& ports, int count, bool echo, int pauseEvery) {
  const auto waiter = makeWaiter();
  SendPort& out = **ports.openSend({1 - rank, 0});
  ReceivePort& in = **ports.openReceive({1 - rank, 0});
  for (int i = 0; i < count; ++i) {
    for (const bool send : {rank == 0, rank != 0}) {
      if (!echo && send != (rank == 0)) continue;
      if (i % pauseEvery == 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 300));
      const auto waited = send ? waitForRing(
                                     *waiter, [&] { return out.waitSource(); }, [&] { return !out.acquire()->empty(); })
                               : waitForRing(
                                     *waiter, [&] { return in.waitSource(); }, [&] { return *in.ready(); });
      if (!waited) return waited;
      if (send) {
        out.commit(1);
      } else {
        in.release();
      }
    }
  }
  return {};
}

TEST(Waiter, LosesNoRingBetweenProcessesThatTakeTurns) {
  ForkedWorld world(2, Medium::sharedMemory,
                    [](Rank rank, Ports& ports, Board&) { return exchange(rank, ports, 3000, true, 5); });
  EXPECT_EQ(world.wait(0), 0);
  EXPECT_EQ(world.wait(1), 0);
}

// Here the sender sleeps for credit and the receiver for chunks, each in turn.
TEST(Waiter, LosesNoRingBetweenASenderAndASlowReceiver) {
  ForkedWorld world(2, Medium::sharedMemory, [](Rank rank, Ports& ports, Board&) {
    return exchange(rank, ports, 3000, false, rank == 0 ? 100 : 3);
  });
  EXPECT_EQ(world.wait(0), 0);
  EXPECT_EQ(world.wait(1), 0);
}

struct PortPair {
  PortPair() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    one.reset(ends[0]);
    two.reset(ends[1]);
  }
  WaitSource readable() const { return {.kind = WaitSource::Kind::socket, .descriptor = one.get(), .events = POLLIN}; }
  FileDescriptor one, two;
};

/// Processor time of as many sleeps as a waiter may make in a second: what a wake costs on this machine, in this build
/// and beside all that runs there now.
Nanoseconds costOfASecondsSleeps() {
  const auto used = threadTime();
  for (int i = 0; i < 250; ++i) {
    const timespec moment{0, 1'000'000};
    ppoll(nullptr, 0, &moment, nullptr);
  }
  return threadTime() - used;
}

TEST(Waiter, UsesUnderFivePercentOfACoreWhateverItWaitsFor) {
  const PortPair pair;
  const WaitSource doorbell{.kind = WaitSource::Kind::doorbell};
  const WaitSource socket = pair.readable();
  auto throttled = socket;
  throttled.events = 0;
  const std::vector<std::vector<WaitSource>> cases = {{}, {doorbell}, {socket}, {doorbell, socket}, {throttled}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto waiter = makeWaiter();
    const auto start = now();
    const auto used = threadTime();
    while (now() - start < 1s) {
      waiter->prepare();
      waiter->wait(cases[i], 100ms);
    }
    const auto waited = threadTime() - used;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    const double most = 0.25;  // its checks cost more than what they check; who spins would use all of it
#else
    const double most = 0.05;
#endif
    // A wake costs 0.1 ms on a machine that was slow or busy: 250 of them are half of the limit already.
    EXPECT_LT(seconds(waited), std::max(most, 4 * seconds(costOfASecondsSleeps()))) << "case " << i;
  }
}

TEST(Waiter, KeepsToTheLimit) {
  const PortPair pair;
  const auto waiter = makeWaiter();
  const std::vector<std::vector<WaitSource>> cases = {{{.kind = WaitSource::Kind::doorbell}}, {pair.readable()}};
  for (const auto& sources : cases) {
    waiter->prepare();
    const auto start = now();
    waiter->wait(sources, 30ms);
    EXPECT_LT(now() - start, 10s);
    waiter->wait(sources, 0ns);
    waiter->wait(sources, -1s);
  }
}

// Wakes the waiter that sleeps on those sources, and sees that it does not sleep to the end.
void expectWoken(std::span<const WaitSource> sources, const std::function<void()>& event) {
  const auto waiter = makeWaiter();
  std::atomic<bool> happened{false};
  std::thread waker([&] {
    std::this_thread::sleep_for(100ms);
    happened = true;
    event();
  });
  const auto start = now();
  while (true) {
    waiter->prepare();
    if (happened) break;
    waiter->wait(sources, 40s);
  }
  EXPECT_LT(now() - start, 30s);
  waker.join();
}

TEST(Waiter, WakesForItsSourcesAndForTheOwnDoorbellAlways) {
  const PortPair pair;
  const WaitSource doorbell{.kind = WaitSource::Kind::doorbell};
  const std::vector<std::vector<WaitSource>> all = {{}, {doorbell}, {pair.readable()}, {doorbell, pair.readable()}};
  for (const auto& sources : all) expectWoken(sources, [] { ringOwnDoorbell(); });
  const auto sendByte = [&] { EXPECT_EQ(send(pair.two.get(), "x", 1, 0), 1); };
  expectWoken(all[2], sendByte);
  char byte;
  EXPECT_EQ(recv(pair.one.get(), &byte, 1, 0), 1);
  expectWoken(all[3], sendByte);
}

TEST(Waiter, SurvivesManyWaitersAndWaitingWithoutATicket) {
  const WaitSource source[] = {{.kind = WaitSource::Kind::doorbell}};
  std::vector<std::unique_ptr<Waiter>> waiters;
  for (int i = 0; i < 50; ++i) waiters.push_back(makeWaiter());
  for (auto& waiter : waiters) waiter->wait(source, 40s);  // no ticket: returns at once
  for (auto& waiter : waiters) waiter->prepare();
  ringOwnDoorbell();
  for (auto& waiter : waiters) waiter->wait(source, 40s);  // rung since, or its ticket was evicted
}

}  // namespace
}  // namespace falcon::transport::test
