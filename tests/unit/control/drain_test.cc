// Draining in random programs: ranks that block as the real ones do, reports and targets that travel at random.
#include "control/drain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

namespace falcon::control {
namespace {

/// What one rank enters at once: a call, or a group over several communicators.
using Event = std::vector<CountKey>;

struct Program {
  std::vector<std::vector<Event>> ranks;            ///< each one's events, in its order
  std::map<CommunicatorId, std::set<Rank>> groups;  ///< ranks of the job
};

bool takesPart(const Program& program, Rank rank, const CountKey& key) {
  return key.from < 0 ? program.groups.at(key.communicator).contains(rank) : key.from == rank || key.to == rank;
}

/// Any order of communicators, messages and groups that some order of the whole job makes possible.
Program randomProgram(std::mt19937& random, int ranks, int events) {
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  Program program;
  program.ranks.resize(ranks);
  const int communicators = 1 + below(5);
  for (int id = 0; id < communicators; ++id) {
    std::set<Rank>& members = program.groups[id];
    while (members.size() < 2)
      for (Rank rank = 0; rank < ranks; ++rank)
        if (id == 0 || below(2)) members.insert(rank);
  }
  for (int i = 0; i < events; ++i) {
    std::vector<Event> added(ranks);
    const int parts = below(3) ? 1 : 1 + below(4);
    for (int part = 0; part < parts; ++part) {
      CountKey key{static_cast<CommunicatorId>(below(communicators))};
      if (below(2)) {
        key.from = below(ranks);
        key.to = (key.from + 1 + below(ranks - 1)) % ranks;
        key.communicator = 0;
      }
      for (Rank rank = 0; rank < ranks; ++rank)
        if (takesPart(program, rank, key)) added[rank].push_back(key);
    }
    for (Rank rank = 0; rank < ranks; ++rank)
      if (!added[rank].empty()) program.ranks[rank].push_back(added[rank]);
  }
  return program;
}

/// Two replicas of stages in a line (`chunks` above 1: in a ring, as interleaved schedules need it): messages forward,
/// in the steady state grouped with those backward; then data parallelism's AllReduce in each stage, and one over all.
Program pipeline(int stages, int microBatches, int chunks) {
  Program program;
  const int ranks = 2 * stages;
  program.ranks.resize(ranks);
  for (Rank rank = 0; rank < ranks; ++rank) program.groups[0].insert(rank);
  for (int stage = 0; stage < stages; ++stage) program.groups[1 + stage] = {stage, stages + stage};
  const auto message = [&](Rank from, Rank to) { return CountKey{0, from, to}; };
  for (int replica = 0; replica < 2; ++replica) {
    const Rank first = replica * stages;
    // Boundaries between virtual stages, as the wave of forward and backward passes crosses them.
    for (int step = 0; step < microBatches * chunks + stages; ++step)
      for (int stage = 0; stage < (chunks > 1 ? stages : stages - 1); ++stage) {
        const Rank from = first + stage, to = first + (stage + 1) % stages;
        if (from == to) continue;
        Event event{message(from, to)};
        if (step >= stages) event.push_back(message(to, from));  // forward and backward at once
        program.ranks[from].push_back(event);
        program.ranks[to].push_back(event);
      }
  }
  for (int stage = 0; stage < stages; ++stage)
    for (const Rank rank : program.groups[1 + stage])
      program.ranks[rank].push_back({CountKey{static_cast<CommunicatorId>(1 + stage)}});
  for (Rank rank = 0; rank < ranks; ++rank) program.ranks[rank].push_back({CountKey{0}});
  return program;
}

/// One forward, one backward, as a stage of a pipeline sees it: forwards until the pipeline is full, then each forward
/// in one group with a backward, then the backwards that are left; at the end data parallelism's AllReduce.
Program oneForwardOneBackward(int stages, int microBatches) {
  Program program;
  program.ranks.resize(stages);
  for (Rank rank = 0; rank < stages; ++rank) program.groups[0].insert(rank);
  for (Rank stage = 0; stage < stages; ++stage) {
    auto& events = program.ranks[stage];
    const auto message = [&](Rank from, Rank to) {
      return from < 0 || to < 0 || from >= stages || to >= stages ? Event{} : Event{CountKey{0, from, to}};
    };
    const auto add = [&](Event event, const Event& other = {}) {
      event.insert(event.end(), other.begin(), other.end());
      if (!event.empty()) events.push_back(event);
    };
    const Event fromBefore = message(stage - 1, stage), toNext = message(stage, stage + 1);
    const Event fromNext = message(stage + 1, stage), toBefore = message(stage, stage - 1);
    const int warmUp = std::min(stages - 1 - stage, microBatches);
    for (int i = 0; i < warmUp; ++i) add(fromBefore), add(toNext);
    if (warmUp < microBatches) add(fromBefore);
    for (int i = warmUp; i < microBatches; ++i) {
      add(toNext, fromNext);
      if (i + 1 < microBatches)
        add(toBefore, fromBefore);
      else
        add(toBefore);
    }
    for (int i = 0; i < warmUp; ++i) add(fromNext), add(toBefore);
    add({CountKey{0}});
  }
  return program;
}

/// A job whose ranks move in a random order. An event ends for a rank when everyone has entered its part as often:
/// nothing is buffered, which is the hardest case.
class Play {
 public:
  Play(const Program& program, std::mt19937& random) : program_(program), random_(random) {
    std::set<bootstrap::ProcessId> members;
    for (Rank rank = 0; rank < size(); ++rank) {
      gates_.emplace_back([this, rank](const CountKey& key) { return takesPart(program_, rank, key); });
      members.insert(rank);
    }
    states_.resize(program.ranks.size());
    drain_ = std::make_unique<Drain>(members);
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) step(anyRank());
  }

  /// Every rank hears of the drain at once, with no targets yet.
  void orderAll() {
    for (Rank rank = 0; rank < size(); ++rank) {
      gates_[rank].order(drain_->version(), drain_->targets());
      states_[rank].reports.push_back(gates_[rank].report());
    }
  }

  void drainFor(int steps) {
    for (State& state : states_) state.orders.push_back({drain_->version(), drain_->targets()});
    for (int i = 0; i < steps; ++i)
      if (!exchange(anyRank())) step(anyRank());
  }

  /// False: nothing can move any more, and the cut is not reached.
  bool drain() {
    for (State& state : states_) state.orders.push_back({drain_->version(), drain_->targets()});
    int idle = 0;
    while (!drain_->reached()) {
      if (idle > 200 * size()) return false;
      idle = (exchange(anyRank()) || step(anyRank())) ? 0 : idle + 1;
    }
    return true;
  }

  /// Those who are inside of an event come out of it, and nobody enters another.
  bool everybodyStands() {
    for (int i = 0; i < 200 * size(); ++i) step(anyRank());
    return std::none_of(states_.begin(), states_.end(), [](const State& state) { return state.inside; });
  }

  bool cutIsConsistent() const {
    std::map<CountKey, std::set<std::uint64_t>> seen;
    for (const auto& [key, count] : drain_->targets())
      for (Rank rank = 0; rank < size(); ++rank)
        if (takesPart(program_, rank, key)) {
          const auto& entered = states_[rank].entered;
          const auto found = entered.find(key);
          seen[key].insert(found == entered.end() ? 0 : found->second);
        }
    return std::all_of(seen.begin(), seen.end(), [](const auto& each) { return each.second.size() == 1; });
  }

  /// Everything that was entered when the drain began, and what that depends on, but nothing else.
  bool isSmallest(const std::vector<std::size_t>& before) const {
    std::vector<std::size_t> needed = before;
    for (bool changed = true; changed;) {
      changed = false;
      Counts most;
      std::vector<Counts> counts(needed.size());
      for (Rank rank = 0; rank < size(); ++rank)
        for (std::size_t i = 0; i < needed[rank]; ++i)
          for (const CountKey& key : program_.ranks[rank][i]) most[key] = std::max(most[key], ++counts[rank][key]);
      for (Rank rank = 0; rank < size(); ++rank)
        for (const auto& [key, count] : most)
          while (takesPart(program_, rank, key) && counts[rank][key] < count) {
            for (const CountKey& next : program_.ranks[rank][needed[rank]++]) ++counts[rank][next];
            changed = true;
          }
    }
    return needed == entered();
  }

  void lift() {
    for (State& state : states_) state.orders.clear();
    for (DrainGate& gate : gates_) gate.lift();
  }
  bool toTheEnd() {
    for (int idle = 0; idle < 200 * size();) idle = step(anyRank()) ? 0 : idle + 1;
    for (Rank rank = 0; rank < size(); ++rank)
      if (states_[rank].inside || states_[rank].next < program_.ranks[rank].size()) return false;
    return true;
  }
  std::vector<std::size_t> entered() const {
    std::vector<std::size_t> all;
    for (const State& state : states_) all.push_back(state.next);
    return all;
  }

 private:
  struct State {
    std::size_t next = 0;  ///< events entered
    bool inside = false;
    Counts entered;
    std::deque<std::pair<std::uint64_t, Counts>> orders;  ///< on their way
    std::deque<DrainGate::Report> reports;                ///< on their way
  };

  Rank size() const { return static_cast<Rank>(program_.ranks.size()); }
  Rank anyRank() { return static_cast<Rank>(random_() % program_.ranks.size()); }

  /// The rank enters its next event, or comes out of one. False where it can do neither.
  bool step(Rank rank) {
    State& state = states_[rank];
    const auto& events = program_.ranks[rank];
    if (state.inside) {
      for (const CountKey& key : events[state.next - 1])
        for (Rank other = 0; other < size(); ++other)
          if (takesPart(program_, other, key)) {
            const auto found = states_[other].entered.find(key);
            if (found == states_[other].entered.end() || found->second < state.entered[key]) return false;
          }
      state.inside = false;
      return true;
    }
    if (state.next == events.size() || !gates_[rank].mayEnter()) return false;
    gates_[rank].enter(events[state.next]);
    for (const CountKey& key : events[state.next]) ++state.entered[key];
    ++state.next;
    state.inside = true;
    if (gates_[rank].report().version > 0) state.reports.push_back(gates_[rank].report());
    return true;
  }

  /// Something arrives from or at the rank.
  bool exchange(Rank rank) {
    State& state = states_[rank];
    if (!state.orders.empty() && random_() % 2) {
      gates_[rank].order(state.orders.front().first, state.orders.front().second);
      state.orders.pop_front();
      state.reports.push_back(gates_[rank].report());
      return true;
    }
    if (state.reports.empty()) return false;
    const bool rose = drain_->handle(rank, state.reports.front());
    state.reports.pop_front();
    if (rose)
      for (State& each : states_) each.orders.push_back({drain_->version(), drain_->targets()});
    return true;
  }

  const Program& program_;
  std::mt19937& random_;
  std::vector<DrainGate> gates_;
  std::vector<State> states_;
  std::unique_ptr<Drain> drain_;
};

void expectDrains(const Program& program, std::mt19937& random, int before) {
  Play play(program, random);
  play.run(before);
  ASSERT_TRUE(play.drain()) << "somebody waits for ever";
  EXPECT_TRUE(play.everybodyStands());
  EXPECT_TRUE(play.cutIsConsistent());
  const auto cut = play.entered();
  play.run(100);
  EXPECT_EQ(play.entered(), cut) << "somebody goes on though the cut is reached";
  play.lift();
  EXPECT_TRUE(play.toTheEnd()) << "the job does not go on";
}

TEST(Drain, ReachesAConsistentCutInRandomPrograms) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int ranks = 2 + static_cast<int>(random() % 15);
    const Program program = randomProgram(random, ranks, 40);
    expectDrains(program, random, static_cast<int>(random() % (60u * static_cast<unsigned>(ranks))));
    if (HasFatalFailure()) return;
  }
}

TEST(Drain, ReachesAConsistentCutInPipelines) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int stages = 2 + static_cast<int>(random() % 6);
    const Program program = pipeline(stages, 8, 1 + static_cast<int>(seed % 2) * 2);
    expectDrains(program, random, static_cast<int>(random() % (80u * static_cast<unsigned>(stages))));
    if (HasFatalFailure()) return;
  }
}

TEST(Drain, ReachesAConsistentCutInOneForwardOneBackward) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int stages = 2 + static_cast<int>(random() % 7);
    const Program program = oneForwardOneBackward(stages, 1 + static_cast<int>(random() % 12));
    expectDrains(program, random, static_cast<int>(random() % (80u * static_cast<unsigned>(stages))));
    if (HasFatalFailure()) return;
  }
}

TEST(Drain, GoesNoFurtherThanWhatWasEnteredDependsOn) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const Program program = randomProgram(random, 2 + static_cast<int>(random() % 7), 30);
    Play play(program, random);
    play.run(static_cast<int>(random() % 300));
    // What ranks enter before they hear of the drain belongs to it; so here all of them hear at once.
    const auto before = play.entered();
    play.orderAll();
    ASSERT_TRUE(play.drain());
    EXPECT_TRUE(play.isSmallest(before));
  }
}

TEST(Drain, GivenUpHalfwayNobodyStaysHeld) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const Program program = randomProgram(random, 2 + static_cast<int>(random() % 7), 30);
    Play play(program, random);
    play.run(static_cast<int>(random() % 300));
    play.drainFor(static_cast<int>(random() % 200));
    play.lift();
    EXPECT_TRUE(play.toTheEnd());
  }
}

TEST(Drain, StrangersAndOldReportsDoNotCount) {
  Drain drain({1, 2});
  const CountKey key{7};
  EXPECT_FALSE(drain.handle(3, {1, false, {{key, 9}}}));
  EXPECT_TRUE(drain.handle(1, {1, false, {{key, 4}}}));
  EXPECT_EQ(drain.version(), 2u);
  EXPECT_FALSE(drain.handle(1, {1, false, {{key, 4}}}));  // for the targets before
  EXPECT_FALSE(drain.handle(2, {2, true, {{key, 3}}}));   // below
  EXPECT_FALSE(drain.handle(1, {2, false, {{key, 4}}}));
  EXPECT_FALSE(drain.reached());
  EXPECT_FALSE(drain.handle(2, {2, false, {{key, 4}}}));
  EXPECT_TRUE(drain.reached());
}

}  // namespace
}  // namespace falcon::control
