// Ranks as processes: who dies, who only seems dead, and what the others get to know.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>

#include "bootstrap/arrivals.h"
#include "bootstrap/star_center.h"
#include "bootstrap/star_member.h"
#include "bootstrap/star_network.h"
#include "harness/in_time.h"
#include "ranks.h"

namespace falcon::bootstrap {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Body = std::function<int(const Network&)>;
using Seconds = std::chrono::duration<double>;

/// Rank `rank` of `size` as a process; `then` runs after all have joined.
Process rankProcess(const LaterId& id, Rank rank, int size, Body then) {
  return Process([&id, rank, size, then] {
    const auto network = join(reactor(), id.get(), rank, size, 60s);
    if (!network || !(*network)->barrier(60s)) return 100;
    return then(*network);
  });
}

int sleepForEver(const Network&) {
  while (true) pause();
}

/// 0 if the communicator breaks, with a text that names `dead`.
Body learnsOfDeath(Rank dead) {
  return [dead](const Network& network) {
    const auto begin = std::chrono::steady_clock::now();
    while (!network->failure()) {
      if (std::chrono::steady_clock::now() - begin > 60s) return 1;
      std::this_thread::sleep_for(1ms);
    }
    const Error error = *network->failure();
    if (error.code() != ErrorCode::remote) return 2;
    if (error.message().find(fmt::format("rank {} (", dead)) == std::string::npos) return 3;
    if (error.message().find("died: its connection was closed") == std::string::npos) return 4;
    return network->barrier(60s) ? 5 : 0;
  };
}

class Deaths : public testing::TestWithParam<std::tuple<int, Rank>> {};

/// How long it takes until all others know.
Seconds timeUntilKnown(int size, Rank dead) {
  LaterId id;
  std::vector<Process> others;
  for (Rank rank = 0; rank < size - 1; ++rank)
    if (rank != dead) others.push_back(rankProcess(id, rank, size, learnsOfDeath(dead)));
  Process victim = rankProcess(id, dead, size, sleepForEver);
  const auto host = reactor();
  // The last rank is in this process: it tells when all have joined.
  const auto network = join(host, id.publish(host), size - 1, size, 60s);
  EXPECT_TRUE(network && (*network)->barrier(60s));
  if (!network) return 0s;
  return test::timeOf([&] {
    victim.signal(SIGKILL);
    EXPECT_EQ(learnsOfDeath(dead)(*network), 0);
    for (Process& other : others) EXPECT_EQ(other.wait(), 0);
  });
}

TEST_P(Deaths, IsKnownToAllOthersWithinFiveSeconds) {
  EXPECT_TRUE(test::isInTime(5s, [] { return timeUntilKnown(std::get<0>(GetParam()), std::get<1>(GetParam())); }));
}
INSTANTIATE_TEST_SUITE_P(Sizes, Deaths,
                         testing::Values(std::tuple{2, 0}, std::tuple{3, 0}, std::tuple{3, 1}, std::tuple{8, 0},
                                         std::tuple{8, 5}));

TEST(Death, OfOneIsRelayedWhileRankZeroComputesWithoutEverCallingUs) {
  LaterId id;
  Process busy = rankProcess(id, 0, 3, [](const Network&) -> int {
    std::atomic<std::uint64_t> number{0};
    while (true) ++number;
  });
  Process victim = rankProcess(id, 1, 3, sleepForEver);
  const auto host = reactor();
  const auto network = join(host, id.publish(host), 2, 3, 60s);
  ASSERT_TRUE(network && (*network)->barrier(60s));
  victim.signal(SIGKILL);
  EXPECT_EQ(learnsOfDeath(1)(*network), 0);
}

TEST(Death, WhileOthersWaitInACollectiveEndsTheirWait) {
  LaterId id;
  Process victim = rankProcess(id, 1, 3, sleepForEver);
  Process other = rankProcess(id, 0, 3, [](const Network& network) { return network->barrier(60s) ? 1 : 0; });
  const auto host = reactor();
  const auto network = join(host, id.publish(host), 2, 3, 60s);
  ASSERT_TRUE(network && (*network)->barrier(60s));
  std::thread killer([&] {
    std::this_thread::sleep_for(50ms);
    victim.signal(SIGKILL);
  });
  const auto result = (*network)->allGather("x", 60s);
  killer.join();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::remote);
  EXPECT_THAT(result.error().message(), HasSubstr("rank 1 ("));
  EXPECT_EQ(other.wait(), 0);
}

TEST(Death, BeforeTheCommunicatorIsCompleteIsToldToThoseWhoWait) {
  LaterId id;
  Process victim([&] { return join(reactor(), id.get(), 1, 3, 60s) ? 1 : 2; });
  const auto host = reactor();
  const UniqueId known = idOn(host);
  id.publish(known);
  std::thread killer([&] {
    EXPECT_TRUE(eventually([&] { return Arrivals::at(known.key).size() == 2; })) << "they did not come";
    victim.signal(SIGKILL);
  });
  const auto network = join(host, known, 0, 3, 60s);
  killer.join();
  ASSERT_FALSE(network);
  EXPECT_EQ(network.error().code(), ErrorCode::remote);
  EXPECT_THAT(network.error().message(), AllOf(HasSubstr("rank 1 ("), HasSubstr("died")));
}

class Stop : public testing::TestWithParam<Rank> {};

// The kernel of a stopped process answers for it, also for longer than hosts may be silent, and also when more is on
// its way to it than fits into its socket.
TEST_P(Stop, IsNotDeath) {
  const Rank stopped = GetParam();
  constexpr int size = 12;
  LaterId id;
  std::vector<Process> ranks;
  for (Rank rank = 0; rank < size - 1; ++rank)
    ranks.push_back(rankProcess(id, rank, size, [](const Network& network) {
      std::this_thread::sleep_for(100ms);  // the test stops one of us before
      const auto all = network->allGather(std::string(1 << 20, 'x'), 60s);
      return all && !network->failure() ? 0 : 1;
    }));
  const auto host = reactor();
  const auto network = join(host, id.publish(host), size - 1, size, 60s);
  ASSERT_TRUE(network && (*network)->barrier(60s));
  ranks[static_cast<std::size_t>(stopped)].signal(SIGSTOP);
  std::thread waker([&] {
    std::this_thread::sleep_for(6s);
    EXPECT_FALSE((*network)->failure());
    ranks[static_cast<std::size_t>(stopped)].signal(SIGCONT);
  });
  const auto all = (*network)->allGather(std::string(1 << 20, 'x'), 60s);  // needs the stopped one
  waker.join();
  EXPECT_TRUE(all) << all.error().message();
  for (Process& rank : ranks) EXPECT_EQ(rank.wait(), 0);
}
INSTANTIATE_TEST_SUITE_P(Ranks, Stop, testing::Values(0, 1));

// In a split nobody else tells them; and the first who hears it leaves, so that for a moment nobody is there.
TEST(Withdrawal, IsToldToEachOfThoseWhoComeLater) {
  const auto host = reactor();
  const transport::Secret secret = *randomSecret();
  const std::vector<Member> members(4, thisMember(host->address()));
  StarCenter::open(host, 7, secret, members);
  transport::withdraw(host->address(), {transport::Purpose::communicator, 7, secret, 2, "its disk is full"}, 20s);
  for (const Rank rank : {1, 3, 0}) {
    const auto member = std::make_shared<StarMember>(host, 7, secret, rank, members);
    const auto connected = member->connect(20s, [] { return std::optional<Error>(); });
    ASSERT_FALSE(connected) << rank;
    EXPECT_THAT(connected.error().message(), testing::HasSubstr("rank 2")) << rank;
    EXPECT_THAT(connected.error().message(), testing::HasSubstr("cannot take part: its disk is full")) << rank;
    member->leave();
    std::this_thread::sleep_for(50ms);  // until that was noticed
  }
}

TEST(Death, IsNotWhatAProcessIsThatLeavesInOrder) {
  LaterId id;
  std::vector<Process> ranks;
  for (Rank rank = 0; rank < 3; ++rank) ranks.push_back(rankProcess(id, rank, 4, [](const Network&) { return 0; }));
  const auto host = reactor();
  const auto network = join(host, id.publish(host), 3, 4, 60s);
  ASSERT_TRUE(network && (*network)->barrier(60s));
  for (Process& rank : ranks) EXPECT_EQ(rank.wait(), 0);
  EXPECT_FALSE((*network)->failure());
  const auto result = (*network)->barrier(60s);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("left"));
}

/// What the processes of a succession tell each other.
struct Progress {
  std::atomic<int> watched{0};    ///< ranks that are connected with the next center
  std::atomic<bool> acts{false};  ///< it is the turn of the last but one
};

/// Waits until the network has a center again, after that of the first ranks, which leave.
bool hasNextCenter(const Network& network, int leavers) {
  const auto& star = dynamic_cast<const StarNetwork&>(*network);
  return eventually([&] { return star.center().value_or(-1) >= leavers; });
}

/// The first `leavers` of `size` ranks leave in order, one after another, and their processes end. Then `act` happens
/// to the last but one, a process, and the others are asked `then`; the last rank is in this process.
class Succession : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  void run(const Body& lastButOne, const std::function<void(Process&)>& act, const Body& then) {
    const int size = std::get<0>(GetParam()), leavers = std::get<1>(GetParam());
    const auto watched = [this, leavers](const Body& body) {
      return [this, leavers, body](const Network& network) {
        if (!hasNextCenter(network, leavers)) return 101;
        ++progress_.watched;
        return body(network);
      };
    };
    LaterId id;
    std::vector<Process> first, others;
    for (Rank rank = 0; rank < leavers; ++rank)
      first.push_back(rankProcess(id, rank, size, [rank](const Network&) {
        std::this_thread::sleep_for(1s * rank);  // some before the next center is there, some after
        return 0;
      }));
    for (Rank rank = leavers; rank < size - 2; ++rank) others.push_back(rankProcess(id, rank, size, watched(then)));
    Process chosen = rankProcess(id, size - 2, size, watched(lastButOne));
    const auto host = reactor();
    const auto network = join(host, id.publish(host), size - 1, size, 60s);
    ASSERT_TRUE(network && (*network)->barrier(60s));
    for (Process& rank : first) EXPECT_EQ(rank.wait(), 0);
    ASSERT_TRUE(hasNextCenter(*network, leavers));
    ASSERT_TRUE(eventually([&] { return progress_.watched == size - leavers - 1; }));
    EXPECT_FALSE((*network)->failure()) << (*network)->failure()->message();
    act(chosen);
    EXPECT_EQ(then(*network), 0);
    for (Process& other : others) EXPECT_EQ(other.wait(), 0);
  }
  ~Succession() override { munmap(&progress_, sizeof progress_); }

  Progress& progress_ =
      *new (mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Progress;
};

TEST_P(Succession, DeathsAreKnownThoughRankZerosProcessHasEnded) {
  run(
      sleepForEver, [](Process& victim) { victim.signal(SIGKILL); }, learnsOfDeath(std::get<0>(GetParam()) - 2));
}

TEST_P(Succession, SoIsTheEndOfWhoGivesUp) {
  const Rank aborting = std::get<0>(GetParam()) - 2;
  run(
      [this](const Network& network) {
        while (!progress_.acts) std::this_thread::sleep_for(1ms);
        network->abort("it has had enough");
        return sleepForEver(network);
      },
      [this](Process&) { progress_.acts = true; },
      [aborting](const Network& network) {
        if (!eventually([&] { return network->failure().has_value(); })) return 1;
        const std::string text(network->failure()->message());
        if (text.find(fmt::format("rank {} (", aborting)) == std::string::npos) return 2;
        return text.find("it has had enough") == std::string::npos ? 3 : 0;
      });
}

TEST_P(Succession, AndTheDepartureOfWhoLeaves) {
  const Rank leaving = std::get<0>(GetParam()) - 2;
  run(
      [this](const Network&) {
        while (!progress_.acts) std::this_thread::sleep_for(1ms);
        return 0;
      },
      [this](Process& leaver) {
        progress_.acts = true;
        EXPECT_EQ(leaver.wait(), 0);
      },
      [leaving](const Network& network) {
        if (!eventually([&] { return network->hasLeft(leaving); })) return 1;
        std::this_thread::sleep_for(1s);
        return network->failure() ? 2 : 0;
      });
}
INSTANTIATE_TEST_SUITE_P(SizeAndLeavers, Succession,
                         testing::Values(std::tuple{3, 1}, std::tuple{5, 1}, std::tuple{5, 2}, std::tuple{6, 3}));

TEST(Death, IsNotWhatHappensWhenAllLeaveOneAfterAnother) {
  LaterId id;
  std::vector<Process> ranks;
  for (Rank rank = 0; rank < 5; ++rank)
    ranks.push_back(rankProcess(id, rank, 6, [rank](const Network& network) {
      std::this_thread::sleep_for(rank * 700ms);
      return network->failure() ? 1 : 0;
    }));
  const auto host = reactor();
  const auto network = join(host, id.publish(host), 5, 6, 60s);
  ASSERT_TRUE(network && (*network)->barrier(60s));
  for (Process& rank : ranks) EXPECT_EQ(rank.wait(), 0);
  EXPECT_TRUE(eventually([&] { return (*network)->hasLeft(4); }));
  EXPECT_FALSE((*network)->failure());
}

TEST(Departure, IsToldToWhoAsksBeforeAndAfterIt) {
  LaterId id;
  Process leaver = rankProcess(id, 1, 3, [](const Network&) { return 0; });
  Process other = rankProcess(id, 0, 3, sleepForEver);
  const auto host = reactor();
  const auto network = join(host, id.publish(host), 2, 3, 60s);
  ASSERT_TRUE(network);
  std::atomic<Rank> before{-1}, after{-1};
  (*network)->onDeparture([&](Rank rank) { before = rank; });
  ASSERT_TRUE((*network)->barrier(60s));
  EXPECT_EQ(leaver.wait(), 0);
  EXPECT_TRUE(eventually([&] { return before == 1; }));
  (*network)->onDeparture([&](Rank rank) { after = rank; });
  EXPECT_TRUE(eventually([&] { return after == 1; }));
}

TEST(Death, AProcessThatExitsWithLiveCommunicatorsExitsCleanlyAndCountsAsDead) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "it leaks on purpose, and the address sanitizer turns that into an exit code";
#endif
  LaterId id;
  Process careless([&] {
    static auto own = *transport::processReactor();
    static Network forgotten = *join(own, id.get(), 1, 2, 60s);
    if (!forgotten->barrier(60s)) return 1;
    new Network(forgotten);
    exit(0);
  });
  const auto host = reactor();
  const auto network = join(host, id.publish(host), 0, 2, 60s);
  ASSERT_TRUE(network && (*network)->barrier(60s));
  EXPECT_EQ(careless.wait(), 0);
  EXPECT_TRUE(eventually([&] { return (*network)->failure().has_value(); }));
}

/// A network namespace with one interface; the other end of the wire is here.
class OtherHost {
 public:
  /// Whether it could be made: needs root and iproute2.
  bool make() {
    remove();  // what an earlier process of this number left, which was killed
    return shell("ip netns add {0}") && shell("ip link add {0}a type veth peer name {0}b netns {0}") &&
           shell("ip addr add {1}.1/24 dev {0}a") && shell("ip link set {0}a up") &&
           shell("ip -n {0} addr add {1}.2/24 dev {0}b") && shell("ip -n {0} link set {0}b up") &&
           shell("ip -n {0} link set lo up");
  }
  ~OtherHost() { remove(); }
  SocketAddress here() const { return *SocketAddress::parse(net_ + ".1:0"); }
  SocketAddress there() const { return *SocketAddress::parse(net_ + ".2:0"); }
  /// Moves the calling thread there.
  bool enter() const {
    const FileDescriptor space(open(("/run/netns/" + name_).c_str(), O_RDONLY | O_CLOEXEC));
    return space && setns(space.get(), CLONE_NEWNET) == 0;
  }
  /// From now on nothing comes back from there, neither data nor resets.
  bool fallSilent() const { return shell("ip -n {0} route replace blackhole {1}.1/32"); }

 private:
  void remove() const {
    shell("ip link del {0}a");
    shell("ip netns del {0}");
  }
  bool shell(const char* command) const {
    return std::system(fmt::format(fmt::runtime(std::string(command) + " >/dev/null 2>&1"), name_, net_).c_str()) == 0;
  }
  const std::string name_ = fmt::format("nf{}", getpid());
  const std::string net_ = fmt::format("10.{}.{}", 128 + getpid() / 250 % 100, getpid() % 250);
};

class Silence : public testing::TestWithParam<Rank> {};

/// How long it takes until the others know. Nothing: there is no other host.
std::optional<Seconds> timeUntilSilenceIsKnown(Rank silent) {
  OtherHost host;
  if (!host.make()) return std::nullopt;
  LaterId laterId;
  Process victim([&] {
    if (!host.enter()) return 1;
    const auto network = join(*transport::makeReactor(host.there()), laterId.get(), silent, 3, 60s);
    return network && (*network)->barrier(60s) ? sleepForEver(*network) : 2;
  });
  const auto here = *transport::makeReactor(host.here());
  const UniqueId id = laterId.publish(here);
  const Rank other = silent == 0 ? 1 : 0;
  std::vector<Network> networks(2);
  onThreads(2, [&](Rank number) {
    const auto network = join(here, id, number == 0 ? other : 2, 3, 60s);
    ASSERT_TRUE(network && (*network)->barrier(60s));
    networks[static_cast<std::size_t>(number)] = *network;
  });
  const bool ready = networks[0] && networks[1] && host.fallSilent();
  EXPECT_TRUE(ready);
  if (!ready) return 0s;
  const Seconds time =
      test::timeOf([&] { EXPECT_TRUE(eventually([&] { return networks[0]->failure() && networks[1]->failure(); })); });
  for (const Network& network : networks)
    EXPECT_THAT(network->failure().value_or(Error::internal("none")).message(),
                AllOf(HasSubstr(fmt::format("rank {} (", silent)), HasSubstr("died: its host fell silent")));
  return time;
}

TEST_P(Silence, OfAHostIsDeathWithinFiveSeconds) {
  bool isThere = true;
  // 4.6 s measured, of which 4 are NCCL_FALCON_DEATH_TIMEOUT; the rest is room for a loaded machine.
  EXPECT_TRUE(test::isInTime(10s, [&] {
    const auto time = timeUntilSilenceIsKnown(GetParam());
    isThere = time.has_value();
    return time.value_or(0s);
  }));
  if (!isThere) GTEST_SKIP() << "needs root, network namespaces and iproute2";
}
INSTANTIATE_TEST_SUITE_P(Ranks, Silence, testing::Values(0, 1));

}  // namespace
}  // namespace falcon::bootstrap
