// A host that falls silent, over UCX: nothing answers any more, and nobody hangs up.
#include <sys/mount.h>

#include "ext_net/forked_ends.h"
#include "ext_net/namespace_link.h"
#include "ucx/ucx_network.h"

namespace falcon::net::test {
namespace {

/// As enter(), for this process; UCX finds the namespace's interfaces in a tree of its own.
void enterWithInterfaces(const std::string& space) {
  enter(space);
  if (unshare(CLONE_NEWNS) != 0 || mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0)
    throw std::runtime_error("cannot see the interfaces of namespace " + space);
}

struct Traffic {
  std::size_t bytes = 0;       ///< of a message
  int sent = 1'000'000'000;    ///< messages; then the sender is there and sends nothing
  bool takesNothing = false;   ///< the receiver is there and does not receive
  bool isSendersHost = false;  ///< that falls silent
};

enum Rank { receiver, sender };

/// A receiver in `east` and a sender in `west`, each a process, until the link is cut and they are told.
class Silence {
 public:
  Silence(const Link& link, Traffic traffic)
      : link_(link), traffic_(traffic), ranks_(2, [this](int rank) { return play(static_cast<Rank>(rank)); }) {}

  testing::AssertionResult bothAreToldInTime() {
    if (!board_.waitFor(moved, 3, Seconds(60))) return testing::AssertionFailure() << "no message has come";
    std::this_thread::sleep_for(Seconds(1));
    traffic_.isSendersHost ? link_.cut() : link_.cutFar();
    board_.reach(cut, now());
    return ranks_.allRight(Seconds(50));
  }

 private:
  using Steady = std::chrono::steady_clock;
  static constexpr int moved = 0, cut = 1;   // places on the board
  static constexpr int limit = 5000 + 1500;  // ms, with what a slow machine may add

  int now() const {  // in ms
    return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - begun_).count());
  }
  bool isCut() const { return board_->steps[cut] != 0; }
  bool isLate() const { return isCut() && now() - board_->steps[cut] > limit; }

  /// What is wrong; "": nothing.
  std::string play(Rank rank) {
    enterWithInterfaces(rank == sender ? link_.west : link_.east);
    UcxNetwork over;
    if (!over.devices()) return "no network";
    std::unique_ptr<Listener> listener;
    const auto connection = rank == sender ? connected(over, board_) : accepted(over, board_, listener);
    if (!connection) return "the ends do not meet";
    const bool isIdle = rank == receiver && traffic_.takesNothing;
    return use(*connection, rank, isIdle ? 0 : rank == sender ? traffic_.sent : 1'000'000'000);
  }
  /// Sends or receives, `most` times, until it fails; is idle then.
  std::string use(Connection& connection, Rank rank, int most) {
    if (rank == receiver && most == 0) board_.reach(moved, 3);
    Bytes data(traffic_.bytes);
    std::size_t bytes = 0;
    for (int i = 0; i < most; ++i) {
      const auto request = connection.start(data.data(), data.size(), nullptr);
      if (!request) return verdictOn(request.error());
      for (bool isDone = false; !isDone;) {
        const auto tested = (*request)->test(bytes);
        if (!tested) return verdictOn(tested.error());
        isDone = *tested;
        if (isLate()) return "it is told of nothing";
        if (!isDone) std::this_thread::yield();
      }
      if (rank == receiver) board_.reach(moved, i + 1);
    }
    while (!isCut()) std::this_thread::sleep_for(Seconds(0.01));
    return "";
  }
  std::string verdictOn(const Error& error) const {
    // The cut is noted once it is made, and may be noticed before.
    while (!isCut())
      if (now() > 110'000) return "an error without a cut: " + error.message();
    const int after = now() - board_->steps[cut];
    if (error.code() != ErrorCode::remote) return "not a remote error: " + error.message();
    return after < limit ? "" : fmt::format("told after {} ms only: {}", after, error.message());
  }

  const Link& link_;
  const Traffic traffic_;
  const Steady::time_point begun_ = Steady::now();
  SharedBoard board_;
  ForkedRanks ranks_;
};

class SilentHost : public testing::Test {
 protected:
  void SetUp() override {
    if (!link_.isThere) GTEST_SKIP() << "network namespaces cannot be made here: they want root";
    ASSERT_TRUE(waitFor([&] { return link_.isUp(); })) << "UCX uses no others";
  }
  void expectBothAreTold(Traffic traffic) {
    Silence silence(link_, traffic);
    EXPECT_TRUE(silence.bothAreToldInTime());
  }

  const Link link_;
};

TEST_F(SilentHost, IsARemoteErrorOfBothEndsWhoseMessagesAreUnderWay) {
  expectBothAreTold({.bytes = 4 << 20});
}

TEST_F(SilentHost, IsARemoteErrorOfBothEndsAlsoWhereItIsTheSenders) {
  expectBothAreTold({.bytes = 4 << 20, .isSendersHost = true});
}

TEST_F(SilentHost, IsARemoteErrorOfBothEndsWhoseMessagesAreShort) {
  expectBothAreTold({.bytes = 4096});
}

TEST_F(SilentHost, IsARemoteErrorOfAReceiverToWhichNothingIsBeingSent) {
  expectBothAreTold({.bytes = 100, .sent = 5, .isSendersHost = true});
}

TEST_F(SilentHost, IsARemoteErrorOfASenderWhoseMessageNobodyTakes) {
  expectBothAreTold({.bytes = 4 << 20, .takesNothing = true});
}

}  // namespace
}  // namespace falcon::net::test
