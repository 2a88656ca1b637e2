// Random programs run with traps at random moments and without: the same bits come out, and nothing moves meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "harness/thoroughness.h"
#include "multi_rank/trap_job.h"

namespace falcon::test {
namespace {

using SteadyClock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// What the ranks share on the board, beside their step counters.
enum Slot { turn = 20, longestEntry = 21, alarms = 22, told = 30 };  // the last one by rank
constexpr int stepsOfARound = 24;
constexpr auto watchdogLimit = 30s;  // as a framework's

#define OR_SAY(call) \
  if (const ncclResult_t result_ = (call); result_ != ncclSuccess) return fail(saying(#call, result_))

void atLeast(std::atomic<int>& value, int other) {
  int known = value.load();
  while (known < other && !value.compare_exchange_weak(known, other)) {
  }
}

/// A rank's random program: the same calls on all ranks, over several communicators, in groups, nonblocking and on
/// streams. Its digest is of every bit received.
class Program {
 public:
  Program(const SharedBoard& board, int rank, int ranks, unsigned seed)
      : board_(board), rank_(rank), ranks_(ranks), random_(seed), data_(own(0)), out_(own(0)) {}

  std::string join() {
    if (auto wrong = makeCommunicator(board_, 0, rank_, ranks_, world_); !wrong.empty()) return wrong;
    OR_SAY(ncclCommSplit(world_, rank_ / 2, rank_, &pair_, nullptr));
    OR_SAY(ncclCommSplit(world_, 0, -rank_, &streamed_, nullptr));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclUniqueId id;
    if (auto wrong = agreeOnId(board_, 1, rank_, id); !wrong.empty()) return wrong;
    const auto begun = ncclCommInitRankConfig(&nonblocking_, ranks_, id, rank_, &config);
    if (begun != ncclSuccess && begun != ncclInProgress) return saying("ncclCommInitRankConfig", begun);
    OR_SAY(finish(nonblocking_));
    for (auto& stream : streams_) OR_SAY(ncclFalconStreamCreate(&stream));
    return "";
  }

  std::string round() {
    for (int i = 0; i < stepsOfARound; ++i) {
      busySince_.store(SteadyClock::now().time_since_epoch().count());
      if (auto wrong = step(); !wrong.empty()) return wrong;
      // Who polled until its nonblocking call was done is not in the library any more, and may come this far while
      // held.
      if (!polled_) board_->steps[rank_].fetch_add(1);
    }
    return "";
  }

  /// Whether any rank has a reason to stop; collective.
  std::string agreeToStop(bool mine, bool& all) {
    std::int32_t value = mine;
    OR_SAY(ncclAllReduce(&value, &value, 1, ncclInt32, ncclMax, world_, hostStream));
    all = value != 0;
    return "";
  }

  std::string leave() {
    for (auto& stream : streams_) OR_SAY(ncclFalconStreamDestroy(stream));
    for (ncclComm_t comm : {pair_, streamed_, nonblocking_, world_}) OR_SAY(ncclCommDestroy(comm));
    return "";
  }

  ncclComm_t world() const { return world_; }
  std::uint64_t digest() const { return digest_; }
  SteadyClock::time_point busySince() const {
    return SteadyClock::time_point(SteadyClock::duration(busySince_.load()));
  }

 private:
  std::string step() {
    static constexpr std::size_t counts[] = {1, 700, 30'000, 400'000};
    const std::size_t count = counts[random_() % 4];
    const unsigned kind = random_() % 7;
    ++number_;
    polled_ = kind == 4;
    data_ = own(count);
    out_.assign(count, -1);
    switch (kind) {
      case 0:
        OR_SAY(ncclAllReduce(data_.data(), out_.data(), count, ncclFloat, ncclSum, world_, hostStream));
        break;
      case 1: {
        std::vector<float> other(count);
        OR_SAY(ncclGroupStart());
        OR_SAY(ncclAllReduce(data_.data(), out_.data(), count, ncclFloat, ncclSum, world_, hostStream));
        OR_SAY(ncclAllReduce(data_.data(), other.data(), count, ncclFloat, ncclProd, pair_, hostStream));
        OR_SAY(ncclGroupEnd());
        take(other);
        break;
      }
      case 2: {
        const int next = (rank_ + 1) % ranks_, before = (rank_ + ranks_ - 1) % ranks_;
        OR_SAY(ncclGroupStart());
        OR_SAY(ncclSend(data_.data(), count, ncclFloat, next, world_, hostStream));
        OR_SAY(ncclRecv(out_.data(), count, ncclFloat, before, world_, hostStream));
        OR_SAY(ncclGroupEnd());
        break;
      }
      case 3:
        OR_SAY(ncclBroadcast(data_.data(), out_.data(), count, ncclFloat, static_cast<int>(count) % ranks_, world_,
                             hostStream));
        break;
      case 4: {
        const auto begun =
            ncclAllReduce(data_.data(), out_.data(), count, ncclFloat, ncclSum, nonblocking_, hostStream);
        if (begun != ncclSuccess && begun != ncclInProgress) return saying("nonblocking ncclAllReduce", begun);
        OR_SAY(finish(nonblocking_));
        break;
      }
      case 5: {  // two streams side by side, and a call of another communicator while they work
        std::vector<float> other(count), beside(700), besideOut(700);
        OR_SAY(ncclAllReduce(data_.data(), out_.data(), count, ncclFloat, ncclSum, streamed_, streams_[0]));
        OR_SAY(ncclAllReduce(data_.data(), other.data(), count, ncclFloat, ncclMax, pair_, streams_[1]));
        OR_SAY(ncclAllReduce(beside.data(), besideOut.data(), beside.size(), ncclFloat, ncclSum, world_, hostStream));
        for (auto& stream : streams_) OR_SAY(ncclFalconStreamSynchronize(stream));
        take(other);
        take(besideOut);
        break;
      }
      default: {  // messages one by one: who sends first waits
        const int peer = rank_ ^ 1;
        if (peer >= ranks_) break;
        if (rank_ < peer) OR_SAY(ncclSend(data_.data(), count, ncclFloat, peer, world_, hostStream));
        OR_SAY(ncclRecv(out_.data(), count, ncclFloat, peer, world_, hostStream));
        if (rank_ > peer) OR_SAY(ncclSend(data_.data(), count, ncclFloat, peer, world_, hostStream));
        break;
      }
    }
    take(out_);
    return "";
  }

  std::vector<float> own(std::size_t count) const {
    std::vector<float> data(count);
    std::uint32_t state = static_cast<std::uint32_t>(number_) * 2654435761U + static_cast<std::uint32_t>(rank_) + 1;
    for (float& value : data) {
      state = state * 1664525U + 1013904223U;
      value = static_cast<float>(state >> 8) / 16'777'216.0F - 0.5F;  // sums depend on their order
    }
    return data;
  }

  void take(const std::vector<float>& data) {
    for (const float value : data) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      digest_ = (digest_ ^ bits) * 1099511628211ULL;
    }
  }

  static ncclResult_t finish(ncclComm_t comm) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
      if (const auto asked = ncclCommGetAsyncError(comm, &state); asked != ncclSuccess) return asked;
      std::this_thread::sleep_for(100us);
    }
    return state;
  }

  std::string fail(const std::string& what) const { return "rank " + std::to_string(rank_) + ": " + what; }

  const SharedBoard& board_;
  const int rank_, ranks_;
  std::mt19937 random_;
  int number_ = 0;
  bool polled_ = false;
  std::vector<float> data_, out_;
  std::uint64_t digest_ = 14695981039346656037ULL;
  std::atomic<SteadyClock::rep> busySince_{SteadyClock::now().time_since_epoch().count()};
  ncclComm_t world_ = nullptr, pair_ = nullptr, streamed_ = nullptr, nonblocking_ = nullptr;
  ncclFalconStream_t streams_[2] = {};
};

/// Traps in turn with the other ranks, until there were `traps`. "" or what went wrong.
std::string trapInTurn(const SharedBoard& board, ncclComm_t comm, int rank, int ranks, int traps,
                       const ToldProcesses& processes) {
  std::mt19937 random(static_cast<unsigned>(rank));
  for (;;) {
    const int now = board->steps[turn].load();
    if (now >= traps) return "";
    if (now % ranks != rank) {
      std::this_thread::sleep_for(500us);
      continue;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8000));
    const auto begun = SteadyClock::now();
    // Only a rank's first may come too early, and only the very first before all processes have found each other.
    const auto held = now == 0      ? suspendWhole(comm, 60'000, processes)
                      : now < ranks ? suspendPatiently(comm, 60'000)
                                    : ncclFalconSuspend(comm, 60'000);
    if (held != ncclSuccess) return saying("suspend", held);
    const auto entry = std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::now() - begun);
    if (now > 0) atLeast(board->steps[longestEntry], static_cast<int>(entry.count()));
    int before = 0, after = 0;
    for (int i = 0; i < ranks; ++i) before += board->steps[i].load();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
    for (int i = 0; i < ranks; ++i) after += board->steps[i].load();
    if (ncclFalconSuspend(comm, 0) != ncclInvalidUsage) return "suspended twice";
    if (const auto open = ncclFalconResume(comm); open != ncclSuccess) return saying("resume", open);
    if (before != after) return "ranks made steps while all were held";
    board->steps[turn].fetch_add(1);
  }
}

/// As a framework has one: no call may last longer than its limit, and to ask a communicator how it is never blocks.
class Watchdog {
 public:
  Watchdog(const SharedBoard& board, const Program& program)
      : thread_([&] {
          while (!stop_.load()) {
            const auto before = SteadyClock::now();
            ncclResult_t state = ncclSuccess;
            if (ncclCommGetAsyncError(program.world(), &state) != ncclSuccess || state != ncclSuccess ||
                before - program.busySince() > watchdogLimit || SteadyClock::now() - before > watchdogLimit / 3)
              board->steps[alarms].fetch_add(1);
            std::this_thread::sleep_for(2ms);
          }
        }) {}
  ~Watchdog() {
    stop_.store(true);
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Runs `rounds`, or with traps as many as they last; each rank's digest and the number of rounds.
std::vector<std::string> run(const SharedBoard& board, int ranks, unsigned seed, int traps, int rounds) {
  const TrapJob job;
  const ToldProcesses processes(board, told, ranks);
  ForkedRanks forked(ranks, [&](int rank) -> std::string {
    job.join(rank, ranks);
    processes.note(rank);
    Program program(board, rank, ranks, seed);
    if (auto wrong = program.join(); !wrong.empty()) return wrong;
    std::string trapped;
    int done = 0;
    {
      const Watchdog watchdog(board, program);
      std::thread trapper([&] {
        trapped = trapInTurn(board, program.world(), rank, ranks, traps, processes);
        if (!trapped.empty()) atLeast(board->steps[turn], traps);  // the others stop too
      });
      for (bool stop = false; !stop; ++done) {
        std::string wrong = program.round();
        if (wrong.empty())
          wrong = program.agreeToStop(traps > 0 ? board->steps[turn].load() >= traps : done + 1 == rounds, stop);
        if (wrong.empty()) continue;
        trapped = wrong;
        break;
      }
      atLeast(board->steps[turn], traps);
      trapper.join();
    }
    if (!trapped.empty()) return trapped;
    if (auto wrong = program.leave(); !wrong.empty()) return wrong;
    return std::to_string(done) + " rounds, digest " + std::to_string(program.digest());
  });
  std::vector<std::string> reports;
  for (int rank = 0; rank < ranks; ++rank) {
    const RankOutcome& outcome = forked.wait(rank, Seconds(traps > 100 ? 3000 : 250));
    reports.push_back(outcome.ended && outcome.signal == 0 ? outcome.report
                                                           : "ended by signal " + std::to_string(outcome.signal));
  }
  return reports;
}

struct Shape {
  int ranks;
  int traps;
};

std::vector<Shape> shapes() {
  if (const char* many = std::getenv("FALCON_TRAPS"))
    return {{2, std::atoi(many)}, {4, std::atoi(many)}, {16, std::atoi(many)}};
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return {{2, 6}, {4, 6}};
#else
  return {{2, 16}, {3, 12}, {4, 16}, {8, 12}, {16, 6}};
#endif
}

class TrapStress : public testing::TestWithParam<std::tuple<Shape, Over>> {};

TEST_P(TrapStress, TheSameBitsComeOut) {
  const auto [shape, over] = GetParam();
  choose(over);
  const unsigned seed = std::getenv("FALCON_TRAP_SEED")
                            ? static_cast<unsigned>(std::atoi(std::getenv("FALCON_TRAP_SEED")))
                            : std::random_device()() % 1'000'000;
  SharedBoard board;
  const auto trapped = run(board, shape.ranks, seed, shape.traps, 0);
  std::printf("FALCON_TRAP_SEED=%u: %d ranks, %d traps, %s; longest wait until all were held: %.1f ms\n", seed,
              shape.ranks, board->steps[turn].load(), trapped[0].c_str(), board->steps[longestEntry].load() / 1e3);
  for (const std::string& each : trapped) ASSERT_NE(each.find("digest"), std::string::npos) << each;
  EXPECT_EQ(board->steps[turn].load(), shape.traps);
  EXPECT_EQ(board->steps[alarms].load(), 0) << "a watchdog was alarmed";

  SharedBoard fresh;
  EXPECT_EQ(run(fresh, shape.ranks, seed, 0, std::atoi(trapped[0].c_str())), trapped);
}

std::vector<std::tuple<Shape, Over>> everyCase() {
  std::vector<std::tuple<Shape, Over>> all;
  for (const Shape& shape : shapes()) {
    all.emplace_back(shape, Over::direct);
    if (shape.ranks == 4) all.emplace_back(shape, Over::sockets);
    if (shape.ranks == 2) all.emplace_back(shape, Over::memory);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, TrapStress, testing::ValuesIn(everyCase()), [](const auto& shape) {
  return std::to_string(std::get<0>(shape.param).ranks) + "Ranks" + nameOf(std::get<1>(shape.param));
});

}  // namespace
}  // namespace falcon::test
