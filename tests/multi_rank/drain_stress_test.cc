// Jobs of the vendor's engine are held at random moments: its kernels, once started, wait on the device until all ranks
// have started theirs, so ranks have to be held at a consistent cut. The stand-in for its library does the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <random>

#include "harness/drain_programs.h"
#include "harness/spinning_vendor.h"
#include "multi_rank/spinning_job.h"

namespace falcon::test {
namespace {

using harness::SharedArena;
using harness::SpinningArena;
using SteadyClock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// What the ranks share on the board, beside their flags "has joined".
enum Slot { turn = 20, longestEntry = 21, told = 30 };  // the last one by process

/// `permuted`: a rank orders calls of different communicators as it likes, now and then, and waits for none meanwhile.
enum class Kind { random, permuted, oneForwardOneBackward, interleaved };

struct Shape {
  Kind kind;
  int ranks;
  int traps;
  int ofAProcess = 1;  ///< ranks, each a thread
  int processes() const { return ranks / ofAProcess; }
};

DrainProgram programOf(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  switch (shape.kind) {
    case Kind::oneForwardOneBackward:
      return oneForwardOneBackward(shape.ranks, 6);
    case Kind::interleaved:
      return pipelineProgram(shape.ranks / 2, 4, 3);
    default:
      return randomProgram(random, shape.ranks, 40);
  }
}

/// One rank, which plays its part of the program again and again. Its digest is of all that it received.
class Player {
 public:
  Player(const Shape& shape, int rank, unsigned seed)
      : shape_(shape), rank_(rank), program_(programOf(shape, seed)), random_(seed + 1000 + rank) {}

  std::string join(const SharedBoard& board) {
    if (auto wrong = makeCommunicator(board, 0, rank_, shape_.ranks, lanes_[0].comm); !wrong.empty()) return wrong;
    for (const auto& [id, members] : program_.groups) {
      if (id == 0) continue;
      const int color = members.contains(rank_) ? 0 : NCCL_SPLIT_NOCOLOR;
      OR_SAY(ncclCommSplit(world(), color, rank_, &lanes_[id].comm, nullptr));
      if (color < 0) lanes_.erase(id);
    }
    OR_SAY(ncclCommSplit(world(), 0, rank_, &control_.comm, nullptr));
    for (auto& [id, lane] : lanes_) lane.stream = streams_.create();
    control_.stream = streams_.create();
    return "";
  }

  std::string round() {
    const auto& events = program_.ranks[rank_];
    constexpr std::size_t window = 8;
    for (std::size_t first = 0; first < events.size(); first += window) {
      const std::size_t last = std::min(first + window, events.size());
      std::vector<const ProgramEvent*> order;
      for (std::size_t i = first; i < last; ++i) order.push_back(&events[i]);
      if (shape_.kind == Kind::permuted) order = anyOrder(order);
      for (const ProgramEvent* event : order) {
        if (auto wrong = enter(*event); !wrong.empty()) return wrong;
        if (shape_.kind != Kind::permuted) maybeWait();
      }
      maybeWait();
    }
    for (auto& [id, lane] : lanes_) streams_.synchronize(lane.stream);
    for (const auto& [key, data] : received_)
      for (const std::int64_t value : data) digest_ = (digest_ ^ static_cast<std::uint64_t>(value)) * 1099511628211ULL;
    received_.clear();
    sent_.clear();
    return "";
  }

  /// Whether any rank has a reason to stop; collective.
  std::string agreeToStop(bool mine, bool& all) {
    std::int64_t value = mine, sum = 0;
    OR_SAY(ncclAllReduce(&value, &sum, 1, ncclInt64, ncclSum, control_.comm, asCuda(control_.stream)));
    streams_.synchronize(control_.stream);
    all = sum > 0;
    return "";
  }

  std::string leave() {
    OR_SAY(ncclCommDestroy(control_.comm));
    for (auto lane = lanes_.rbegin(); lane != lanes_.rend(); ++lane) OR_SAY(ncclCommDestroy(lane->second.comm));
    return "";
  }

  ncclComm_t world() { return lanes_[0].comm; }
  std::uint64_t digest() const { return digest_; }

 private:
  struct Lane {
    ncclComm_t comm = nullptr;
    void* stream = nullptr;
  };
  using Data = std::vector<std::int64_t>;

  std::string enter(const ProgramEvent& event) {
    if (event.size() > 1) OR_SAY(ncclGroupStart());
    for (const ProgramCall& call : event)
      if (auto wrong = enter(call); !wrong.empty()) return wrong;
    if (event.size() > 1) OR_SAY(ncclGroupEnd());
    return "";
  }

  std::string enter(const ProgramCall& call) {
    const Lane& lane = lanes_.at(call.communicator);
    const std::uint64_t number = numbers_[call]++;
    const std::size_t count = 1 + (number + call.communicator) % harness::spinningElements;
    Data& mine = sent_.emplace_back(count);
    for (std::size_t i = 0; i < count; ++i)
      mine[i] = static_cast<std::int64_t>((number * 31 + i) * 2654435761U + static_cast<unsigned>(rank_) * 977U);
    if (call.from == rank_) {
      OR_SAY(ncclSend(mine.data(), count, ncclInt64, call.to, lane.comm, asCuda(lane.stream)));
      return "";
    }
    Data& other = received_[{call, number}];
    other.assign(count, -1);
    if (call.from < 0)
      OR_SAY(ncclAllReduce(mine.data(), other.data(), count, ncclInt64, ncclSum, lane.comm, asCuda(lane.stream)));
    else
      OR_SAY(ncclRecv(other.data(), count, ncclInt64, call.from, lane.comm, asCuda(lane.stream)));
    return "";
  }

  /// As a training does that needs what it has received.
  void maybeWait() {
    const auto lane = std::next(lanes_.begin(), static_cast<int>(random_() % lanes_.size()));
    if (random_() % 3 == 0) streams_.synchronize(lane->second.stream);
  }

  /// Another order of the same events, in which those of a communicator follow each other as before.
  std::vector<const ProgramEvent*> anyOrder(std::vector<const ProgramEvent*> events) {
    std::vector<const ProgramEvent*> order;
    while (!events.empty()) {
      std::vector<std::size_t> possible;
      std::set<std::uint64_t> before;
      for (std::size_t i = 0; i < events.size(); ++i) {
        const bool free = std::none_of(events[i]->begin(), events[i]->end(),
                                       [&](const ProgramCall& call) { return before.contains(call.communicator); });
        if (free) possible.push_back(i);
        for (const ProgramCall& call : *events[i]) before.insert(call.communicator);
      }
      const std::size_t chosen = possible[random_() % possible.size()];
      order.push_back(events[chosen]);
      events.erase(events.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
    return order;
  }

  const Shape shape_;
  const int rank_;
  const DrainProgram program_;
  std::mt19937 random_;
  std::map<std::uint64_t, Lane> lanes_;
  Lane control_;
  std::map<ProgramCall, std::uint64_t> numbers_;
  std::deque<Data> sent_;
  std::map<std::pair<ProgramCall, std::uint64_t>, Data> received_;
  std::uint64_t digest_ = 14695981039346656037ULL;
  Streams streams_;
};

/// Whether, since all ranks are held, what they have launched is done, and nothing new is launched.
std::string standsStill(const SharedArena& arena, std::mt19937& random) {
  if (SpinningArena::sum(arena->completed) != SpinningArena::sum(arena->launched))
    return "the job is held, but kernels still run";
  const long before = SpinningArena::sum(arena->launched);
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
  return SpinningArena::sum(arena->launched) == before ? "" : "ranks launched while all were held";
}

ncclResult_t suspendAll(const ToldProcesses& processes, ncclComm_t comm, bool first) {
  const auto held = first ? suspendWhole(comm, 300'000, processes) : ncclFalconSuspend(comm, 300'000);
  return held == ncclSuccess && !processes.areAll() ? ncclInternalError : held;
}

/// Traps in turn with the other processes, until there were `traps`. "" or what went wrong.
std::string trapInTurn(const SharedBoard& board, const SharedArena& arena, ncclComm_t comm, int process,
                       const Shape& shape) {
  const ToldProcesses processes(board, told, shape.processes());
  std::mt19937 random(static_cast<unsigned>(process));
  for (int other = 0; other < shape.ranks; ++other)
    if (shape.traps > 0 && !board.waitFor(other, 1, Seconds(120))) return "not all ranks joined";
  for (;;) {
    const int now = board->steps[turn].load();
    if (now >= shape.traps) return "";
    if (now % shape.processes() != process) {
      std::this_thread::sleep_for(500us);
      continue;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8000));
    const auto begun = SteadyClock::now();
    if (const auto held = suspendAll(processes, comm, now == 0); held != ncclSuccess) return saying("suspend", held);
    const auto entry = std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::now() - begun);
    if (now > 0)
      board->steps[longestEntry] = std::max(board->steps[longestEntry].load(), static_cast<int>(entry.count()));
    const std::string moved = standsStill(arena, random);
    if (const auto open = ncclFalconResume(comm); open != ncclSuccess) return saying("resume", open);
    if (!moved.empty()) return "trap " + std::to_string(now) + ": " + moved;
    board->steps[turn].fetch_add(1);
  }
}

/// A rank's life: rounds, `rounds` or with traps as many as they last. "" or what went wrong.
std::string play(const SharedBoard& board, const SharedArena& arena, const Shape& shape, int rank, unsigned seed,
                 int rounds, std::string& report) {
  Player player(shape, rank, seed);
  if (auto wrong = player.join(board); !wrong.empty()) return wrong;
  board.reach(rank, 1);
  std::string wrong, trapped;
  std::thread trapper;
  if (rank % shape.ofAProcess == 0)
    trapper = std::thread([&] {
      trapped = trapInTurn(board, arena, player.world(), rank / shape.ofAProcess, shape);
      if (!trapped.empty()) board->steps[turn] = shape.traps;  // the others stop too
    });
  int done = 0;
  for (bool stop = false; wrong.empty() && !stop; ++done) {
    wrong = player.round();
    const bool mine = shape.traps > 0 ? board->steps[turn].load() >= shape.traps : done + 1 == rounds;
    if (wrong.empty()) wrong = player.agreeToStop(mine, stop);
  }
  if (!wrong.empty()) board->steps[turn] = shape.traps;
  if (trapper.joinable()) trapper.join();
  report = std::to_string(done) + " rounds, digest " + std::to_string(player.digest());
  if (wrong.empty()) wrong = trapped;
  return wrong.empty() ? player.leave() : wrong;
}

/// What each process says of its ranks.
std::vector<std::string> run(const SharedBoard& board, const Shape& shape, unsigned seed, int rounds) {
  const TrapJob job;
  const SharedArena arena;
  ForkedRanks forked(shape.processes(), [&](int process) -> std::string {
    job.join(process, shape.processes());
    useSpinningVendor();
    setenv("NCCL_FALCON_TRAP_ENTRY", "120", 1);
    ToldProcesses(board, told, shape.processes()).note(process);
    std::vector<std::string> reports(shape.ofAProcess);
    std::vector<std::thread> threads;
    for (int i = 0; i < shape.ofAProcess; ++i)
      threads.emplace_back([&, i] {
        const int rank = process * shape.ofAProcess + i;
        const std::string wrong = play(board, arena, shape, rank, seed, rounds, reports[i]);
        if (!wrong.empty()) reports[i] = "rank " + std::to_string(rank) + ": " + wrong;
      });
    for (std::thread& thread : threads) thread.join();
    std::string all;
    for (const std::string& each : reports) {
      if (each.find("digest") == std::string::npos) return each;
      all += (all.empty() ? "" : "; ") + each;
    }
    return all;
  });
  std::vector<std::string> reports;
  for (int process = 0; process < shape.processes(); ++process) {
    const RankOutcome& outcome = forked.wait(process, Seconds(400));
    reports.push_back(outcome.ended && outcome.signal == 0 ? outcome.report
                                                           : "ended by signal " + std::to_string(outcome.signal));
  }
  return reports;
}

class DrainStress : public testing::TestWithParam<Shape> {};

TEST_P(DrainStress, EveryTrapHoldsAtAConsistentCutAndChangesNoResult) {
  const Shape shape = GetParam();
  const unsigned seed = std::getenv("FALCON_TRAP_SEED")
                            ? static_cast<unsigned>(std::atoi(std::getenv("FALCON_TRAP_SEED")))
                            : std::random_device()() % 1'000'000;
  SharedBoard board;
  const auto trapped = run(board, shape, seed, 0);
  std::printf("FALCON_TRAP_SEED=%u: %d ranks, %d traps, %s; longest wait until all were held: %.1f ms\n", seed,
              shape.ranks, board->steps[turn].load(), trapped[0].c_str(), board->steps[longestEntry].load() / 1e3);
  for (const std::string& each : trapped) ASSERT_NE(each.find("digest"), std::string::npos) << each;
  EXPECT_EQ(board->steps[turn].load(), shape.traps);

  Shape untrapped = shape;
  untrapped.traps = 0;
  SharedBoard fresh;
  EXPECT_EQ(run(fresh, untrapped, seed, std::atoi(trapped[0].c_str())), trapped);
}

std::vector<Shape> shapes() {
  int many = 0;
  if (const char* asked = std::getenv("FALCON_TRAPS")) many = std::atoi(asked);
  std::vector<Shape> all;
  for (const Kind kind : {Kind::random, Kind::permuted, Kind::oneForwardOneBackward, Kind::interleaved})
    for (const int ranks : {2, 4, 7, 16}) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
      if (ranks > 4) continue;
#endif
      const int traps = many > 0 ? many : ranks > 8 ? 10 : 24;
      if (kind == Kind::interleaved && ranks % 2 != 0) continue;
      all.push_back({kind, ranks, traps});
      if (ranks == 4) all.push_back({kind, ranks, traps, 2});
    }
  return all;
}

std::string nameOf(const testing::TestParamInfo<Shape>& shape) {
  constexpr const char* names[] = {"Random", "Permuted", "OneForwardOneBackward", "Interleaved"};
  return names[static_cast<int>(shape.param.kind)] + std::to_string(shape.param.ranks) + "Ranks" +
         (shape.param.ofAProcess > 1 ? "AsThreads" : "");
}

INSTANTIATE_TEST_SUITE_P(Programs, DrainStress, testing::ValuesIn(shapes()), nameOf);

}  // namespace
}  // namespace falcon::test
