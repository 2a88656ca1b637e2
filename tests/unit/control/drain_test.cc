// Draining in random programs: ranks that block as the real ones do, reports and targets that travel at random.
#include "control/drain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "harness/drain_programs.h"

namespace falcon::control {
namespace {

using falcon::test::DrainProgram;
using falcon::test::ProgramCall;

CountKey keyOf(const ProgramCall& call) {
  return {call.communicator, call.from, call.to};
}

ProgramCall callOfKey(const CountKey& key) {
  return {key.communicator, key.from, key.to};
}

Call callOf(const ProgramCall& call, Rank rank) {
  if (call.from < 0) return {.operation = Operation::allReduce};
  if (call.from == rank) return {.operation = Operation::send, .peer = call.to};
  return {.operation = Operation::receive, .peer = call.from};
}

/// A job whose ranks move in a random order. An event ends for a rank when everyone has entered its part as often:
/// nothing is buffered, which is the hardest case.
class Play {
 public:
  Play(const DrainProgram& program, std::mt19937& random) : program_(program), random_(random) {
    std::set<bootstrap::ProcessId> members;
    for (Rank rank = 0; rank < size(); ++rank) {
      State& state = states_.emplace_back();
      for (const auto& [communicator, ranks] : program.groups) {
        if (!ranks.contains(rank)) continue;
        const auto made = state.counts.emplace(communicator, std::make_unique<CallCounts>(size()));
        gates_.emplace(rank, DrainGate()).first->second.add({communicator, rank}, *made.first->second);
      }
      members.insert(rank);
    }
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
        if (takesPart(program_, rank, callOfKey(key))) {
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
          for (const ProgramCall& call : program_.ranks[rank][i]) {
            std::uint64_t& count = most[keyOf(call)];
            count = std::max(count, ++counts[rank][keyOf(call)]);
          }
      for (Rank rank = 0; rank < size(); ++rank)
        for (const auto& [key, count] : most)
          while (takesPart(program_, rank, callOfKey(key)) && counts[rank][key] < count) {
            for (const ProgramCall& next : program_.ranks[rank][needed[rank]++]) ++counts[rank][keyOf(next)];
            changed = true;
          }
    }
    return needed == entered();
  }

  void lift() {
    for (State& state : states_) state.orders.clear();
    for (auto& [rank, gate] : gates_) gate.lift();
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
    std::map<CommunicatorId, std::unique_ptr<CallCounts>> counts;
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
      for (const ProgramCall& call : events[state.next - 1])
        for (Rank other = 0; other < size(); ++other)
          if (takesPart(program_, other, call)) {
            const auto found = states_[other].entered.find(keyOf(call));
            if (found == states_[other].entered.end() || found->second < state.entered[keyOf(call)]) return false;
          }
      state.inside = false;
      return true;
    }
    if (state.next == events.size() || !gates_[rank].mayEnter()) return false;
    for (const ProgramCall& call : events[state.next]) {
      state.counts.at(call.communicator)->enter(callOf(call, rank));
      ++state.entered[keyOf(call)];
    }
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

  const DrainProgram& program_;
  std::mt19937& random_;
  std::map<Rank, DrainGate> gates_;
  std::deque<State> states_;
  std::unique_ptr<Drain> drain_;
};

void expectDrains(const DrainProgram& program, std::mt19937& random, int before) {
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
    const DrainProgram program = falcon::test::randomProgram(random, ranks, 40);
    expectDrains(program, random, static_cast<int>(random() % (60u * static_cast<unsigned>(ranks))));
    if (HasFatalFailure()) return;
  }
}

TEST(Drain, ReachesAConsistentCutInPipelines) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int stages = 2 + static_cast<int>(random() % 6);
    const DrainProgram program = falcon::test::pipelineProgram(stages, 8, 1 + static_cast<int>(seed % 2) * 2);
    expectDrains(program, random, static_cast<int>(random() % (80u * static_cast<unsigned>(stages))));
    if (HasFatalFailure()) return;
  }
}

TEST(Drain, ReachesAConsistentCutInOneForwardOneBackward) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int stages = 2 + static_cast<int>(random() % 7);
    const DrainProgram program = falcon::test::oneForwardOneBackward(stages, 1 + static_cast<int>(random() % 12));
    expectDrains(program, random, static_cast<int>(random() % (80u * static_cast<unsigned>(stages))));
    if (HasFatalFailure()) return;
  }
}

TEST(Drain, GoesNoFurtherThanWhatWasEnteredDependsOn) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const DrainProgram program = falcon::test::randomProgram(random, 2 + static_cast<int>(random() % 7), 30);
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
    const DrainProgram program = falcon::test::randomProgram(random, 2 + static_cast<int>(random() % 7), 30);
    Play play(program, random);
    play.run(static_cast<int>(random() % 300));
    play.drainFor(static_cast<int>(random() % 200));
    play.lift();
    EXPECT_TRUE(play.toTheEnd());
  }
}

TEST(Drain, AProcessOfSeveralRanksIsBelowWhereOneIs) {
  DrainGate gate;
  CallCounts first(3), second(3);
  gate.add({7, 0}, first);
  gate.add({7, 1}, second);
  first.enter({.operation = Operation::allReduce});
  EXPECT_TRUE(gate.isInside());
  first.leave();
  EXPECT_FALSE(gate.isInside());
  EXPECT_EQ(gate.report().entered, (Counts{{{7}, 1}}));
  gate.order(1, {{{7}, 1}});
  EXPECT_TRUE(gate.mayEnter()) << "its second rank has to enter what the first one has";
  second.enter({.operation = Operation::allReduce});
  EXPECT_FALSE(gate.mayEnter());
  // A message between the two: who sends has entered it, who receives has not.
  first.enter({.operation = Operation::send, .peer = 1});
  gate.order(2, gate.report().entered);
  EXPECT_TRUE(gate.mayEnter());
  second.enter({.operation = Operation::receive, .peer = 0});
  EXPECT_FALSE(gate.mayEnter());
  // Nobody here takes part in these.
  gate.order(3, {{{8}, 5}, {{7, 1, 2}, 0}, {{7, 2, 40}, 3}});
  EXPECT_FALSE(gate.mayEnter());
  gate.lift();
  EXPECT_TRUE(gate.mayEnter());
}

TEST(Drain, WhatACommunicatorThatIsGoneHadEnteredCounts) {
  DrainGate gate;
  CallCounts counts(2);
  gate.add({7, 0}, counts);
  counts.enter({.operation = Operation::send, .peer = 1});
  gate.remove({7, 0});
  gate.order(1, {{{7, 0, 1}, 2}});
  EXPECT_FALSE(gate.report().below);
  EXPECT_EQ(gate.report().entered, (Counts{{{7, 0, 1}, 1}}));
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
