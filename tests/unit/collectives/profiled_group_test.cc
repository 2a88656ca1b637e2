// What a profiler plugin is told of a group, and in which order.
#include "collectives/profiled_group.h"

#include <gmock/gmock.h>

#include "harness/fake_profiler.h"
#include "harness/rank_buffers.h"
#include "world.h"

namespace falcon::collectives {
namespace {

using test::driveAll;
using test::freshRuns;
using test::RankBuffers;
using test::World;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;
using testing::StartsWith;

/// Writes down what it is told.
class KeepingProfiler final : public plugin::ProfilerCalls {
 public:
  int version() const override { return 7; }
  const char* name() const override { return "Keeping"; }
  std::uint32_t knownEvents() const override { return plugin::eventsOfV7; }
  std::vector<const char*> missing() const override { return {}; }
  plugin::ResultCode init(const plugin::ProfiledCommunicator&, void**, int*) const override { return plugin::success; }
  plugin::ResultCode start(void*, void** handle, const plugin::Event& event) const override {
    ++started_;
    ++open;
    lines.push_back(test::startLine(event, started_, numberOf(event.parent)));
    *handle = reinterpret_cast<void*>(static_cast<std::uintptr_t>(started_));
    return plugin::success;
  }
  plugin::ResultCode stop(void* handle) const override {
    --open;
    lines.push_back("stop " + std::to_string(numberOf(handle)));
    return plugin::success;
  }
  plugin::ResultCode state(void* handle, plugin::EventState state, plugin::StateArguments*) const override {
    lines.push_back("state " + std::to_string(numberOf(handle)) + " " + std::to_string(static_cast<int>(state)));
    return plugin::success;
  }
  plugin::ResultCode finalize(void*) const override { return plugin::success; }

  mutable std::vector<std::string> lines;
  mutable int open = 0;

 private:
  static int numberOf(void* handle) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(handle)); }
  mutable int started_ = 0;
};

/// A world whose rank 0 has a profiler that wants these events.
struct ProfiledWorld {
  explicit ProfiledWorld(int ranks, std::uint32_t wanted, unsigned seed = 1) : world(1, ranks, seed), mask(wanted) {
    world[0].profiler = std::make_shared<plugin::ProfilerSession>(
        profiler, nullptr, plugin::ProfiledCommunicator{.ranks = ranks, .rank = 0}, mask);
  }
  /// Every rank makes these calls as a group. Whether all was right.
  testing::AssertionResult run(const std::vector<Call>& calls) {
    const int ranks = static_cast<int>(world.members.size());
    auto runs = freshRuns(ranks);
    std::vector<std::vector<RankBuffers>> buffers(ranks);
    std::vector<Submission> submissions;
    for (Rank rank = 0; rank < ranks; ++rank)
      for (const Call& call : calls) buffers[rank].emplace_back(call, rank, ranks, false);
    for (std::size_t i = 0; i < calls.size(); ++i) submissions.push_back({.call = buffers[0][i].call(), .tag = 5});
    ProfiledApi api(submissions);
    for (Rank rank = 0; rank < ranks; ++rank) {
      for (std::size_t i = 0; i < calls.size(); ++i) {
        const auto* session = world[rank].profiler.get();
        if (!runs[rank].add(world[rank], buffers[rank][i].call(), session ? api.add(i, session) : ProfiledCall()))
          return testing::AssertionFailure() << "not added";
      }
      if (rank == 0) api.launch();
      if (!runs[rank].start()) return testing::AssertionFailure() << "not started";
    }
    std::vector<GroupRun*> all;
    for (GroupRun& run : runs) all.push_back(&run);
    if (auto driven = driveAll(all, 3); !driven) return driven;
    for (const auto& ofRank : buffers)
      for (const RankBuffers& each : ofRank)
        if (auto right = each.check(); !right) return right;
    return testing::AssertionSuccess();
  }

  KeepingProfiler profiler;
  World world;
  int mask;
};

const Call sum{Operation::allReduce, DataType::f32, ReduceOp::sum, nullptr, nullptr, 700};

TEST(ProfiledGroup, IsToldInNcclsOrder) {
  ProfiledWorld world(3, plugin::collectiveEvent);
  ASSERT_TRUE(world.run({sum}));
  EXPECT_THAT(
      world.profiler.lines,
      ElementsAre("group-api 1: depth 1", "state 1 23", "collective-api 2 in 1: AllReduce of 700 ncclFloat32", "stop 2",
                  "state 1 24", "group 3", "collective 4 in 2: AllReduce 0 of 700 ncclFloat32 by TREE on 1", "stop 4",
                  "stop 3", "stop 1"));
  EXPECT_EQ(world.profiler.open, 0);
}

TEST(ProfiledGroup, OnlyTheCallsOfTheApiWhereNothingElseIsWanted) {
  ProfiledWorld world(2, plugin::groupApiEvent);
  ASSERT_TRUE(world.run({sum, sum}));
  EXPECT_THAT(world.profiler.lines, ElementsAre("group-api 1: depth 2", "state 1 23", "state 1 24", "stop 1"));
}

TEST(ProfiledGroup, NumbersCountByOperation) {
  ProfiledWorld world(2, plugin::collectiveEvent);
  const Call gather{Operation::allGather, DataType::u8, ReduceOp::sum, nullptr, nullptr, 900};
  ASSERT_TRUE(world.run({sum, gather, sum}));
  int numbered = 0;
  for (const std::string& line : world.profiler.lines) {
    if (line.find("AllReduce 0 of") != std::string::npos || line.find("AllReduce 1 of") != std::string::npos ||
        line.find("AllGather 0 of") != std::string::npos)
      ++numbered;
  }
  EXPECT_EQ(numbered, 3);
}

/// As many channels as were announced, each with an event of its own whose parent is the call's.
TEST(ProfiledGroup, EachAnnouncedChannelIsTold) {
  ProfiledWorld world(3, plugin::kernelChannelEvent);
  Call large = sum;
  large.count = 100000;
  ASSERT_TRUE(world.run({large}));
  EXPECT_THAT(world.profiler.lines,
              Contains(StartsWith("collective 4 in 2: AllReduce 0 of 100000 ncclFloat32 by RING on 2")));
  std::vector<std::string> channels;
  for (const std::string& line : world.profiler.lines)
    if (line.starts_with("channel ")) channels.push_back(line.substr(line.find(" in ")));
  EXPECT_THAT(channels, testing::UnorderedElementsAre(" in 4: 0", " in 4: 1"));
  EXPECT_EQ(world.profiler.open, 0);
  const auto stops = std::count_if(world.profiler.lines.begin(), world.profiler.lines.end(),
                                   [](const std::string& line) { return line.ends_with(" 22"); });
  EXPECT_EQ(stops, 2);
}

TEST(ProfiledGroup, NothingHasNoChannels) {
  ProfiledWorld world(2, plugin::kernelChannelEvent);
  Call nothing = sum;
  nothing.count = 0;
  ASSERT_TRUE(world.run({nothing}));
  EXPECT_THAT(world.profiler.lines, Not(Contains(StartsWith("channel "))));
  EXPECT_EQ(world.profiler.open, 0);
}

/// Every step ends, in each of them the states have NCCL's order, and its operation ends after it.
TEST(ProfiledGroup, TransfersAreToldStepByStep) {
  ProfiledWorld world(3, plugin::proxyStepEvent, 7);
  ASSERT_TRUE(world.run({sum, sum}));
  std::map<int, std::string> kinds;
  std::map<int, std::vector<int>> states;
  std::map<int, int> openOf;  // steps, by operation
  std::map<int, int> parentOf;
  int sends = 0, receives = 0, steps = 0;
  for (const std::string& line : world.profiler.lines) {
    int number = 0, parent = 0, state = 0;
    if (std::sscanf(line.c_str(), "op %d in %d", &number, &parent) == 2) {
      kinds[number] = line.find(" to ") != std::string::npos ? "send" : "receive";
      ++(kinds[number] == "send" ? sends : receives);
    } else if (std::sscanf(line.c_str(), "step %d in %d", &number, &parent) == 2) {
      ++steps;
      parentOf[number] = parent;
      ++openOf[parent];
      ASSERT_TRUE(kinds.contains(parent)) << line;
    } else if (std::sscanf(line.c_str(), "state %d %d", &number, &state) == 2) {
      states[number].push_back(state);
    } else if (std::sscanf(line.c_str(), "stop %d", &number) == 1) {
      if (parentOf.contains(number)) --openOf[parentOf[number]];
      if (kinds.contains(number)) {
        EXPECT_EQ(openOf[number], 0) << "operation " << number << " before its steps";
      }
    }
  }
  EXPECT_GT(sends, 0);
  EXPECT_GT(receives, 0);
  EXPECT_GE(steps, sends + receives);
  for (const auto& [step, operation] : parentOf) {
    const std::vector<int> order =
        kinds[operation] == "send" ? std::vector<int>{8, 20, 9} : std::vector<int>{10, 11, 12};
    std::vector<int> seen = states[step];
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    EXPECT_EQ(seen, order) << kinds[operation] << " step " << step;
  }
  EXPECT_EQ(world.profiler.open, 0);
}

TEST(ProfiledGroup, MessagesAreTold) {
  ProfiledWorld world(2, plugin::messageEvent | plugin::kernelChannelEvent);
  std::vector<int> data(50);
  auto runs = freshRuns(2);
  const Call send{Operation::send, DataType::i32, ReduceOp::sum, data.data(), nullptr, data.size(), 1};
  const Call receive{Operation::receive, DataType::i32, ReduceOp::sum, nullptr, data.data(), data.size(), 0};
  const Submission submission{.call = send};
  {
    ProfiledApi api({&submission, 1});
    ASSERT_TRUE(runs[0].add(world.world[0], send, api.add(0, world.world[0].profiler.get())));
    api.launch();
    ASSERT_TRUE(runs[0].start());
    ASSERT_TRUE(runs[1].add(world.world[1], receive));
    ASSERT_TRUE(runs[1].start());
    ASSERT_TRUE(driveAll({&runs[0], &runs[1]}, 1));
  }
  EXPECT_THAT(world.profiler.lines, Contains("message-api 2 in 1: Send of 50 ncclInt32"));
  EXPECT_THAT(world.profiler.lines, Contains("message 4 in 2: Send of 50 with 1 on 1"));
  EXPECT_THAT(world.profiler.lines, Contains("channel 5 in 4: 0"));
  EXPECT_EQ(world.profiler.open, 0);
}

/// A communicator that breaks ends its events all the same.
TEST(ProfiledGroup, WhatFailsIsStopped) {
  ProfiledWorld world(2, static_cast<int>(plugin::eventsOfV7));
  std::vector<float> data(700);
  const Call call{Operation::allReduce, DataType::f32, ReduceOp::sum, data.data(), data.data(), data.size()};
  const Submission submission{.call = call};
  {
    auto runs = freshRuns(1);
    ProfiledApi api({&submission, 1});
    ASSERT_TRUE(runs[0].add(world.world[0], call, api.add(0, world.world[0].profiler.get())));
    api.launch();
    ASSERT_TRUE(runs[0].start());
    for (int turn = 0; turn < 20; ++turn) runs[0].progress();
    EXPECT_GT(world.profiler.open, 0) << "it waits for rank 1";
    *world.world.failure = Error::remote("rank 1 died");
    while (!runs[0].finished()) runs[0].progress();
    EXPECT_FALSE(runs[0].outcome());
  }
  EXPECT_EQ(world.profiler.open, 0);
}

}  // namespace
}  // namespace falcon::collectives
