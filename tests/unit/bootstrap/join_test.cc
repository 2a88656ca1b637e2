#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "bootstrap/arrivals.h"
#include "bootstrap/make_unique_id.h"
#include "harness/reserved_port.h"
#include "ranks.h"
#include "unit/base/environment.h"

namespace falcon::bootstrap {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(UniqueId, SurvivesItsBytes) {
  for (const char* address : {"10.1.2.3:4000", "[fd00::1]:1", "127.0.0.1:65535"}) {
    const UniqueId id{*SocketAddress::parse(address), *randomNumber(), *randomSecret()};
    const auto again = UniqueId::parse(id.bytes());
    ASSERT_TRUE(again);
    EXPECT_EQ(again->address.text(), address);
    EXPECT_EQ(again->key, id.key);
    EXPECT_EQ(again->secret, id.secret);
  }
}

TEST(UniqueId, RefusesBytesThatAreNotOurs) {
  const UniqueId id{*SocketAddress::parse("10.1.2.3:4000"), 5, *randomSecret()};
  const auto good = id.bytes();
  const std::array<char, 128> zeros{};
  EXPECT_FALSE(UniqueId::parse(zeros));
  for (std::size_t at = 0; at < 49; ++at) {  // magic, version, address, key, secret, checksum
    auto bad = good;
    bad[at] ^= 0x10;
    const auto parsed = UniqueId::parse(bad);
    ASSERT_FALSE(parsed) << at;
    EXPECT_EQ(parsed.error().code(), ErrorCode::invalidArgument);
  }
}

/// The errors of all ranks that `attempt` returns.
std::vector<Error> errorsOf(int attempts, const std::function<Result<Network>(int)>& attempt) {
  std::mutex mutex;
  std::vector<Error> errors;
  onThreads(attempts, [&](int number) {
    auto network = attempt(number);
    const std::lock_guard lock(mutex);
    if (!network) errors.push_back(network.error());
  });
  return errors;
}

TEST(Join, RefusesRanksThatDoNotFit) {
  const auto host = reactor();
  const UniqueId id = idOn(host);
  for (const auto& [rank, size] : {std::pair{0, 0}, {-1, 2}, {2, 2}, {0, -1}})
    EXPECT_EQ(join(host, id, rank, size, 1s).error().code(), ErrorCode::invalidArgument);
}

TEST(Join, ShowsWhoHasComeUntilAllHave) {
  const auto host = reactor();
  const UniqueId id = idOn(host);
  EXPECT_TRUE(Arrivals::at(id.key).empty());
  std::atomic<int> met{0};
  onThreads(3, [&](int number) {
    if (number == 2) {
      while (Arrivals::at(id.key).size() < 2) std::this_thread::yield();
      EXPECT_THAT(Arrivals::at(id.key), testing::UnorderedElementsAre(0, 2));
      EXPECT_EQ(met, 0);
    }
    const Rank rank = number == 0 ? 0 : 3 - number;
    EXPECT_TRUE(join(
        reactor(), id, rank, 3, 60s, [] { return false; }, [&] { ++met; }));
  });
  EXPECT_EQ(met, 3);
  while (!Arrivals::at(id.key).empty()) std::this_thread::yield();  // gone with the rendezvous
}

TEST(Join, TellsAllOfARankThatWasClaimedTwice) {
  const auto host = reactor();
  const UniqueId id = idOn(host);
  const auto errors = errorsOf(4, [&](int number) { return join(reactor(), id, std::min(number, 2), 4, 60s); });
  ASSERT_EQ(errors.size(), 4u);
  for (const Error& error : errors) {
    EXPECT_EQ(error.code(), ErrorCode::invalidUsage) << error.message();
    EXPECT_THAT(error.message(), HasSubstr("rank 2 was claimed twice"));
  }
}

/// Fails where the error came as late as one that nothing but the limit brought. Those who wait for that long are all
/// of 100 s late; a machine of one core is not so slow.
template <class Attempt>
Error soonTold(Attempt attempt) {
  const auto start = std::chrono::steady_clock::now();
  const auto network = attempt();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 60s);
  EXPECT_FALSE(network);
  return network ? Error::internal("none") : network.error();
}

TEST(Join, TellsWhoComesAfterTheOthersWereRefused) {
  const auto host = reactor();
  const UniqueId id = idOn(host);
  EXPECT_EQ(errorsOf(2, [&](int) { return join(reactor(), id, 0, 2, 60s); }).size(), 2u);
  const Error late = soonTold([&] { return join(reactor(), id, 1, 2, 100s); });
  EXPECT_EQ(late.code(), ErrorCode::invalidUsage);
  EXPECT_THAT(late.message(), HasSubstr("rank 0 was claimed twice"));
}

TEST(Join, TellsWhoComesWhenTheRendezvousIsOver) {
  const auto host = reactor();
  const UniqueId id = idOn(host);
  std::array<Network, 2> networks;
  onThreads(2, [&](Rank rank) { networks[static_cast<std::size_t>(rank)] = *join(reactor(), id, rank, 2, 60s); });
  onThreads(2, [&](Rank rank) {
    const Error again = soonTold([&] { return join(reactor(), id, rank, 2, 100s); });
    EXPECT_THAT(again.message(), AllOf(HasSubstr("is over"), HasSubstr("needs a new unique id")));
  });
  EXPECT_TRUE(networks[0]->id() == networks[1]->id());
}

TEST(Join, TellsAllOfTwoCommunicatorsThatAreMadeAtOnceByOneId) {
  for (int round = 0; round < 10; ++round) {
    const auto host = reactor();
    const UniqueId id = idOn(host);
    // Two may have met before the others came: these have a communicator, and the others are told.
    const auto start = std::chrono::steady_clock::now();
    const auto errors = errorsOf(4, [&](int number) { return join(reactor(), id, number % 2, 2, 100s); });
    EXPECT_LT(std::chrono::steady_clock::now() - start, 60s);
    EXPECT_GE(errors.size(), 2u);
    endAllRendezvous();
  }
}

TEST(Join, TellsWhoComesWhenTheProcessOfTheRendezvousHasEnded) {
  UniqueId id;
  const test::ReservedPort port;  // nobody else takes it over
  {
    const auto host = *transport::makeReactor(*SocketAddress::parse(port.text()));
    id = idOn(host);
    endAllRendezvous();
  }
  // Nobody listens any more, or a connection that still got into the listener's queue is hung up on.
  EXPECT_THAT(soonTold([&] { return join(reactor(), id, 1, 2, 100s); }).message(),
              AllOf(HasSubstr(id.address.text()), HasSubstr("the process that made the unique id has ended")));
}

TEST(Join, TellsAllOfAWrongSize) {
  const auto host = reactor();
  const UniqueId id = idOn(host);
  const auto errors = errorsOf(4, [&](int number) { return join(reactor(), id, number, number == 3 ? 5 : 4, 60s); });
  ASSERT_EQ(errors.size(), 4u);
  for (const Error& error : errors) {
    EXPECT_EQ(error.code(), ErrorCode::invalidUsage) << error.message();
    EXPECT_THAT(error.message(), AllOf(HasSubstr("5"), HasSubstr("4")));
  }
}

TEST(Join, EndsWhenTheOthersDoNotCome) {
  const auto host = reactor();
  const UniqueId id = idOn(host);
  const auto network = join(reactor(), id, 1, 2, 300ms);
  ASSERT_FALSE(network);
  EXPECT_EQ(network.error().code(), ErrorCode::remote);
  EXPECT_THAT(network.error().message(), HasSubstr(id.address.text()));
}

TEST(Join, TellsTheOthersWhenOneGivesUp) {
  const auto host = reactor();
  const UniqueId id = idOn(host);
  const auto errors = errorsOf(2, [&](int number) { return join(reactor(), id, number, 3, number == 0 ? 5s : 60s); });
  ASSERT_EQ(errors.size(), 2u);
  const auto told = std::ranges::count_if(
      errors, [](const Error& error) { return error.message().find("gave up") != std::string::npos; });
  EXPECT_EQ(told, 1);
}

TEST(Join, TellsAllOfARankThatCannotCome) {
  const auto host = reactor();
  const UniqueId id = idOn(host);
  std::thread absent([&] { withdraw(id, 1, 3, Error::system("its disk is full")); });
  const auto errors = errorsOf(2, [&](int number) { return join(reactor(), id, 2 * number, 3, 1h); });
  absent.join();
  ASSERT_EQ(errors.size(), 2u);
  for (const Error& error : errors) {
    EXPECT_EQ(error.code(), ErrorCode::remote);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("rank 1"), HasSubstr("cannot take part: its disk is full")));
  }
}

TEST(Join, HeedsNoWithdrawalOfWhoDoesNotKnowTheSecret) {
  const auto host = reactor();
  const UniqueId id = idOn(host);
  UniqueId others = id;
  others.secret[3] ^= std::byte{1};
  withdraw(others, 1, 2, Error::system("its disk is full"));
  onThreads(2, [&](Rank rank) {
    const auto network = join(reactor(), id, rank, 2, 60s);
    EXPECT_TRUE(network) << network.error().message();
  });
}

TEST(Join, RefusesAWrongSecret) {
  const auto host = reactor();
  UniqueId id = idOn(host);
  id.secret[3] ^= std::byte{1};
  const auto network = join(reactor(), id, 0, 2, 20s);
  ASSERT_FALSE(network);
  EXPECT_EQ(network.error().code(), ErrorCode::invalidUsage);
  EXPECT_THAT(network.error().message(), AllOf(HasSubstr("different secrets"), HasSubstr("unique id")));
}

TEST(Join, TwoCommunicatorsAtOnceDoNotMix) {
  const auto host = reactor();
  const UniqueId ids[] = {idOn(host), idOn(host)};
  std::vector<Network> networks(8);
  onThreads(8, [&](int number) {
    auto network = join(reactor(), ids[number % 2], number / 2, 4, 60s);
    ASSERT_TRUE(network) << network.error().message();
    networks[static_cast<std::size_t>(number)] = *network;
    const auto all = (*network)->allGather(std::to_string(number % 2), 60s);
    ASSERT_TRUE(all);
    EXPECT_EQ(*all, std::vector<std::string>(4, std::to_string(number % 2)));
  });
  EXPECT_NE(networks[0]->id(), networks[1]->id());
  EXPECT_NE(networks[0]->secret(), networks[1]->secret());
}

TEST(Join, RanksOfOneProcessMayShareAReactor) {
  const auto host = reactor();
  const UniqueId id = idOn(host);
  onThreads(4, [&](Rank rank) {
    auto network = join(host, id, rank, 4, 60s);
    ASSERT_TRUE(network) << network.error().message();
    EXPECT_TRUE((*network)->barrier(60s));
  });
}

TEST(Join, AloneEveryNetworkHasItsOwnId) {
  std::thread([] {}).join();  // with the first one the thread sanitizer starts one of its own
  const auto threads = count("/proc/self/task");
  std::set<CommunicatorId> ids;
  for (int i = 0; i < 10; ++i) {
    const auto id = makeUniqueId();
    ASSERT_TRUE(id);
    const auto processReactor = *transport::processReactor();
    const auto network = join(processReactor, *id, 0, 1, 1s);
    ASSERT_TRUE(network);
    ids.insert((*network)->id());
  }
  EXPECT_EQ(ids.size(), 10u);
  EXPECT_TRUE(eventually([&] {  // nothing keeps the process's reactor
    return count("/proc/self/task") <= threads;
  }));
}

TEST(Join, TheFixedAddressServesOneCommunicatorAfterTheOther) {
  const test::ReservedPort port;
  setenv("NCCL_COMM_ID", port.text().c_str(), 1);
  std::vector<Process> ranks;
  for (Rank rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([rank] {
      std::set<CommunicatorId> ids;
      for (int round = 0; round < 8; ++round) {
        const auto id = makeUniqueId();
        if (!id) return 1;
        auto network = join(*transport::processReactor(), *id, rank, 3, 60s);
        if (!network) return 2;
        if (!(*network)->barrier(60s)) return 3;
        ids.insert((*network)->id());
      }
      return ids.size() == 8 ? 0 : 4;
    });
  }
  for (Process& rank : ranks) EXPECT_EQ(rank.wait(), 0);
  unsetenv("NCCL_COMM_ID");
}

TEST(Join, AFixedAddressMustBeAnAddressWithAPort) {
  for (const char* text : {"nonsense", "127.0.0.1:0"}) {
    setenv("NCCL_COMM_ID", text, 1);
    const auto id = makeUniqueId();
    unsetenv("NCCL_COMM_ID");
    ASSERT_FALSE(id) << text;
    EXPECT_THAT(id.error().message(), AllOf(HasSubstr("NCCL_COMM_ID"), HasSubstr(text)));
  }
}

TEST(Join, WhereRank0CannotBeIsSaidAtOnceWithTheVariableThatNamesIt) {
  const std::string place = "198.51.100.7:4444";
  const UniqueId id = idOfFixedAddress(*SocketAddress::parse(place), "");
  for (const char* variable : {"NCCL_COMM_ID", "NCCL_FALCON_COMM_ID"}) {
    const Variable set(variable, place.c_str());
    const auto network = join(reactor(), id, 0, 2, 60s);
    ASSERT_FALSE(network);
    EXPECT_EQ(network.error().code(), ErrorCode::invalidUsage);
    EXPECT_THAT(network.error().message(), AllOf(HasSubstr(std::string(" ") + variable), HasSubstr(place)));
  }
}

/// Another one, and something that happens before a rank first looks for the rendezvous.
class Delayed : public transport::Reactor {
 public:
  Delayed(std::shared_ptr<Reactor> real, std::function<void()> before)
      : real_(std::move(real)), before_(std::move(before)) {}
  SocketAddress address() const override {
    before_();
    return real_->address();
  }
  void expect(transport::Purpose purpose, std::uint64_t key, const transport::Secret& secret,
              ConnectionHandler handler) override {
    real_->expect(purpose, key, secret, std::move(handler));
  }
  void forget(transport::Purpose purpose, std::uint64_t key) override { real_->forget(purpose, key); }
  void watch(int descriptor, short events, EventHandler handler) override {
    real_->watch(descriptor, events, std::move(handler));
  }
  void unwatch(int descriptor) override { real_->unwatch(descriptor); }
  std::uint64_t addTimer(std::function<void()> ring) override { return real_->addTimer(std::move(ring)); }
  void setTimer(std::uint64_t timer, Nanoseconds fromNow) override { real_->setTimer(timer, fromNow); }
  void removeTimer(std::uint64_t timer) override { real_->removeTimer(timer); }
  void post(std::function<void()> work) override { real_->post(std::move(work)); }

 private:
  const std::shared_ptr<Reactor> real_;
  const std::function<void()> before_;
};

/// The errors of ranks 1 and 2, which are at the rendezvous of rank 0 when `happens`, before it comes there itself.
std::vector<Error> errorsOfOthersWhen(const std::function<void()>& happens, const std::function<bool()>& givenUp) {
  const test::ReservedPort port;
  const UniqueId id = idOfFixedAddress(*SocketAddress::parse(port.text()), "");
  const auto othersAreIn = [&] { return Arrivals::at(id.key).size() == 2; };
  std::vector<Error> errors;
  std::mutex mutex;
  onThreads(3, [&](Rank rank) {
    const auto network = rank == 0 ? join(std::make_shared<Delayed>(reactor(),
                                                                    [&] {
                                                                      EXPECT_TRUE(eventually(othersAreIn));
                                                                      happens();
                                                                    }),
                                          id, rank, 3, 60s, givenUp)
                                   : join(reactor(), id, rank, 3, 60s);
    const std::lock_guard lock(mutex);
    if (!network && rank > 0) errors.push_back(network.error());
  });
  return errors;
}

TEST(Join, TellsThoseWhoAreInThatTheHostHasNoDescriptorToComeItself) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto errors = errorsOfOthersWhen(
      [&] {
        const int next = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
        close(next);
        const rlimit tight{static_cast<rlim_t>(next), before.rlim_max};
        setrlimit(RLIMIT_NOFILE, &tight);
      },
      [] { return false; });
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_EQ(errors.size(), 2u);
  for (const Error& error : errors) EXPECT_THAT(error.message(), AllOf(HasSubstr("rank 0"), HasSubstr("Too many")));
}

TEST(Join, TellsThoseWhoAreInThatTheHostGaveUpBeforeItCame) {
  std::atomic<bool> hasGivenUp = false;
  const auto errors = errorsOfOthersWhen([&] { hasGivenUp = true; }, [&] { return hasGivenUp.load(); });
  ASSERT_EQ(errors.size(), 2u);
  for (const Error& error : errors) EXPECT_THAT(error.message(), AllOf(HasSubstr("rank 0"), HasSubstr("gave up")));
}

// That may pass, so it is tried again until then.
TEST(Join, WhoGivesUpAPortThatIsTakenHearsOfIt) {
  const auto other = reactor();
  int asked = 0;
  const auto network = join(reactor(), idOfFixedAddress(other->address(), ""), 0, 2, 60s, [&] { return ++asked > 2; });
  ASSERT_FALSE(network);
  EXPECT_THAT(network.error().message(), AllOf(HasSubstr(other->address().text()), HasSubstr("already in use")));
}

}  // namespace
}  // namespace falcon::bootstrap
