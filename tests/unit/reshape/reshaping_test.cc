// Ranks as threads; what they say to each other and send goes through memory, and any step can be made to fail.
#include "reshape/reshaping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

#include "base/format.h"
#include "topology/layout.h"

namespace falcon::reshape {
namespace {

using topology::Layout;

/// What all ranks of a job share.
class Table {
 public:
  explicit Table(int ranks) : texts_(static_cast<std::size_t>(ranks)), all_(ranks) {}

  std::vector<std::string> allGather(Rank rank, std::string_view mine) {
    texts_[static_cast<std::size_t>(rank)] = mine;
    all_.arrive_and_wait();
    const auto all = texts_;
    all_.arrive_and_wait();
    return all;
  }
  void post(const StateMessage& message) {
    const std::lock_guard lock(mutex_);
    sent_[{message.from, message.to}].push_back(message);
  }
  void meet() { all_.arrive_and_wait(); }
  /// The next message of that pair, in order.
  StateMessage take(Rank from, Rank to) {
    const std::lock_guard lock(mutex_);
    auto& queue = sent_[{from, to}];
    if (queue.empty()) return {};
    const StateMessage first = queue.front();
    queue.erase(queue.begin());
    return first;
  }
  void joined(std::size_t place, int color, Rank key, Rank rank) {
    const std::lock_guard lock(mutex_);
    made_[{place, color}][key] = rank;
  }
  /// Who is in the group, in order.
  std::vector<Rank> members(std::size_t place, int color) {
    const std::lock_guard lock(mutex_);
    std::vector<Rank> ranks;
    for (const auto& [key, rank] : made_[{place, color}]) ranks.push_back(rank);
    return ranks;
  }

 private:
  std::vector<std::string> texts_;
  std::barrier<> all_;
  std::mutex mutex_;
  std::map<std::pair<Rank, Rank>, std::vector<StateMessage>> sent_;
  std::map<std::pair<std::size_t, int>, std::map<Rank, Rank>> made_;
};

/// Bytes that tell whose they are: of a place for what replicas have, of a role for what it has alone.
std::vector<std::byte> contentOf(const Layout& layout, int role, bool replicated, int buffer) {
  const auto at = layout.coordinatesOf(role);
  const unsigned mark = replicated ? 1000U + static_cast<unsigned>(at.pipeline * layout.tensorSize + at.tensor)
                                   : static_cast<unsigned>(role);
  std::mt19937 random(mark * 16 + static_cast<unsigned>(buffer));
  // Stages differ in size.
  std::vector<std::byte> bytes(100 + 300 * static_cast<std::size_t>(at.pipeline) + static_cast<std::size_t>(buffer));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

struct Owned {
  std::string name;
  bool replicated;
  std::vector<std::byte> bytes;
};

std::vector<StateBuffer> buffersOf(std::vector<Owned>& owned) {
  std::vector<StateBuffer> buffers;
  for (Owned& each : owned) buffers.push_back({each.name, each.bytes.data(), each.bytes.size(), each.replicated});
  return buffers;
}

/// A rank: what a framework and an engine do.
class FakeRank : public ReshapeWorld {
 public:
  FakeRank(Table& table, const Layout& layout, Rank rank, int role)
      : table_(table), layout_(layout), rank_(rank), role_(role) {
    for (const bool replicated : {true, false})
      for (int buffer = 0; buffer < 2; ++buffer)
        state_.push_back({nameOf(replicated, buffer), replicated, contentOf(layout, role, replicated, buffer)});
    const auto at = layout.coordinatesOf(role);
    if (layout.dataSize > 1) groups_[0] = {10 + std::uint64_t(at.pipeline * layout.tensorSize + at.tensor), at.data};
    if (layout.pipelineSize > 1)
      groups_[1] = {50 + std::uint64_t(at.data * layout.tensorSize + at.tensor), at.pipeline};
  }

  std::optional<ReshapeStep> failsAt;
  bool throws = false;  ///< what fails
  Error fails(const char* why) const {
    if (throws) throw std::runtime_error(why);
    return Error::system("{}", why);
  }
  std::function<void(std::vector<std::byte>&)> harm = [](auto&) {};  ///< what comes over the wire

  Result<std::vector<std::string>> allGather(std::string_view mine) override { return table_.allGather(rank_, mine); }
  void at(ReshapeStep step) override { steps.push_back(step); }
  std::vector<StateBuffer> state() const override { return buffersOf(const_cast<std::vector<Owned>&>(state_)); }

  Result<std::vector<StateBuffer>> prepare(int role) override {
    if (failsAt == ReshapeStep::prepare) return fails("no memory");
    EXPECT_NE(role, role_);
    for (const bool replicated : {false, true})  // in another order than the old ones
      for (int buffer = 0; buffer < 2; ++buffer)
        room_.push_back({nameOf(replicated, buffer), false,
                         std::vector<std::byte>(contentOf(layout_, role, replicated, buffer).size())});
    return buffersOf(room_);
  }

  Status exchange(std::vector<StateMessage> messages) override {
    for (const StateMessage& message : messages)
      if (message.from == rank_) table_.post(message);
    table_.meet();
    for (const StateMessage& message : messages) {
      if (message.to != rank_) continue;
      const StateMessage sent = table_.take(message.from, rank_);
      EXPECT_EQ(sent.bytes, message.bytes);
      if (sent.bytes != message.bytes) continue;
      std::vector<std::byte> bytes(sent.sent, sent.sent + sent.bytes);
      harm(bytes);
      std::copy(bytes.begin(), bytes.end(), message.received);
    }
    table_.meet();
    if (failsAt == ReshapeStep::move) return fails("the connection is lost");
    return {};
  }

  std::vector<GroupPlace> groups() const override { return {groups_[0], groups_[1]}; }
  Status rebuild(std::size_t place, int color, const GroupPlace& as) override {
    if (failsAt == ReshapeStep::rebuild && place == 1) return fails("no descriptor");
    if (color < 0) return {};
    table_.joined(place, color, as.rank, rank_);
    made_[place] = color;
    return {};
  }
  void commit(int role, std::vector<StateBuffer> state) override {
    role_ = role;
    EXPECT_EQ(state.size(), room_.size());
    for (const StateBuffer& buffer : state)
      std::find_if(room_.begin(), room_.end(), [&](const Owned& each) {
        return each.name == buffer.name;
      })->replicated = buffer.replicated;
    state_ = std::move(room_);
    ++commits;
  }
  void adoptGroups() override { adopted = made_; }
  void abandon() override {
    room_.clear();
    made_.clear();
    ++abandoned;
  }

  int role() const { return role_; }
  std::map<std::string, std::vector<std::byte>> content() const {
    std::map<std::string, std::vector<std::byte>> content;
    for (const Owned& each : state_) content[each.name + (each.replicated ? "*" : "")] = each.bytes;
    return content;
  }

  std::vector<ReshapeStep> steps;
  int commits = 0, abandoned = 0;
  std::map<std::size_t, int> adopted;

 private:
  static std::string nameOf(bool replicated, int buffer) {
    return (replicated ? "weights." : "moments.") + std::to_string(buffer);
  }

  Table& table_;
  const Layout layout_;
  const Rank rank_;
  int role_;
  std::vector<Owned> state_, room_;
  GroupPlace groups_[2];
  std::map<std::size_t, int> made_;
};

struct FakeJob {
  FakeJob(const Layout& layout, const Roles& roles) : layout(layout), before(roles), table(layout.size()) {
    for (Rank rank = 0; rank < layout.size(); ++rank)
      ranks.push_back(std::make_unique<FakeRank>(table, layout, rank, roles[static_cast<std::size_t>(rank)]));
  }
  std::vector<Result<ReshapeResult>> reshapeTo(const Roles& after) {
    return reshapeTo([&](Rank) { return after; });
  }
  std::vector<Result<ReshapeResult>> reshapeTo(const std::function<Roles(Rank)>& afterOf) {
    std::vector<std::optional<Result<ReshapeResult>>> results(ranks.size());
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < layout.size(); ++rank)
      threads.emplace_back([&, rank] {
        results[static_cast<std::size_t>(rank)] =
            reshape({rank, before, afterOf(rank), places(), {}}, *ranks[static_cast<std::size_t>(rank)]);
      });
    for (std::thread& thread : threads) thread.join();
    std::vector<Result<ReshapeResult>> all;
    for (auto& result : results) all.push_back(std::move(*result));
    return all;
  }
  std::vector<int> places() const {
    std::vector<int> places;
    for (Rank role = 0; role < layout.size(); ++role)
      places.push_back(role % (layout.pipelineSize * layout.tensorSize));
    return places;
  }
  /// Every rank has the state of its role in `roles`, and nothing else.
  void expectStateOf(const Roles& roles) const {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      EXPECT_EQ(ranks[rank]->role(), roles[rank]);
      Table other(1);
      EXPECT_EQ(ranks[rank]->content(), FakeRank(other, layout, 0, roles[rank]).content()) << "rank " << rank;
    }
  }

  const Layout layout;
  const Roles before;
  Table table;
  std::vector<std::unique_ptr<FakeRank>> ranks;
};

Roles shuffled(int size, unsigned seed) {
  Roles roles(static_cast<std::size_t>(size));
  std::iota(roles.begin(), roles.end(), 0);
  std::mt19937 random(seed);
  if (seed > 0) std::shuffle(roles.begin(), roles.end(), random);
  return roles;
}

class Reshape : public testing::TestWithParam<Layout> {};

TEST_P(Reshape, GivesEveryRankTheStateOfItsNewRole) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    FakeJob job(GetParam(), shuffled(GetParam().size(), seed));
    const Roles after = shuffled(GetParam().size(), seed + 100);
    std::uint64_t received = 0, inAll = 0;
    for (const auto& result : job.reshapeTo(after)) {
      ASSERT_TRUE(result) << result.error().message();
      received += result->bytesReceived;
      inAll = result->bytesInAll;
    }
    EXPECT_EQ(received, inAll);
    job.expectStateOf(after);
    for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
      EXPECT_EQ(job.ranks[rank]->commits, job.before[rank] == after[rank] ? 0 : 1);
      EXPECT_EQ(job.ranks[rank]->abandoned, 0);
      EXPECT_EQ(job.ranks[rank]->steps.size(), 5U);
    }
  }
}

TEST_P(Reshape, PutsEveryRankWhereItsNewRoleWasInItsGroups) {
  const Layout layout = GetParam();
  FakeJob job(layout, shuffled(layout.size(), 3));
  const Roles after = shuffled(layout.size(), 4);
  job.reshapeTo(after);
  for (Rank rank = 0; rank < layout.size(); ++rank) {
    const int role = after[static_cast<std::size_t>(rank)];
    const std::vector<Rank> roles[] = {layout.dataGroup(role), layout.pipelineGroup(role)};
    for (std::size_t place = 0; place < 2; ++place) {
      const auto& adopted = job.ranks[static_cast<std::size_t>(rank)]->adopted;
      if (roles[place].size() < 2) continue;
      ASSERT_TRUE(adopted.contains(place));
      std::vector<int> members;
      for (const Rank member : job.table.members(place, adopted.at(place)))
        members.push_back(after[static_cast<std::size_t>(member)]);
      EXPECT_EQ(members, roles[place]);
    }
  }
}

TEST_P(Reshape, ChangesNothingWhereAStepFailsOnAnybody) {
  const Layout layout = GetParam();
  const Roles after = shuffled(layout.size(), 8);
  for (const ReshapeStep step : {ReshapeStep::prepare, ReshapeStep::move, ReshapeStep::rebuild})
    for (int each = 0; each < 2 * layout.size(); ++each) {
      const Rank failing = each / 2;
      if (step == ReshapeStep::prepare && after[static_cast<std::size_t>(failing)] == failing) continue;
      if (step == ReshapeStep::rebuild && layout.pipelineSize < 2) continue;
      FakeJob job(layout, shuffled(layout.size(), 0));
      job.ranks[static_cast<std::size_t>(failing)]->failsAt = step;
      job.ranks[static_cast<std::size_t>(failing)]->throws = each % 2 == 1;
      for (const auto& result : job.reshapeTo(after)) {
        ASSERT_FALSE(result);
        EXPECT_TRUE(result.error().message().starts_with(nameOf(step))) << result.error().message();
        EXPECT_NE(result.error().message().find(fmt::format("rank {}", failing)), std::string::npos);
      }
      job.expectStateOf(job.before);
      for (const auto& rank : job.ranks) {
        EXPECT_EQ(rank->commits, 0);
        EXPECT_EQ(rank->abandoned, 1);
        EXPECT_TRUE(rank->adopted.empty());
      }
    }
}

TEST_P(Reshape, ChangesNothingWhereAByteArrivesChanged) {
  const Layout layout = GetParam();
  const Roles after = shuffled(layout.size(), 8);
  FakeJob job(layout, shuffled(layout.size(), 0));
  job.ranks.back()->harm = [](auto& bytes) { bytes[bytes.size() / 2] ^= std::byte{1}; };
  const bool moves = after.back() != layout.size() - 1;
  for (const auto& result : job.reshapeTo(after)) EXPECT_EQ(static_cast<bool>(result), !moves);
  job.expectStateOf(moves ? job.before : after);
}

TEST_P(Reshape, RefusesRolesThatRanksDoNotAgreeOn) {
  const Layout layout = GetParam();
  FakeJob job(layout, shuffled(layout.size(), 0));
  const auto results =
      job.reshapeTo([&](Rank rank) { return shuffled(layout.size(), rank == layout.size() - 1 ? 8 : 9); });
  if (shuffled(layout.size(), 8) == shuffled(layout.size(), 9)) return;
  for (const auto& result : results) EXPECT_FALSE(result);
  job.expectStateOf(job.before);
}
INSTANTIATE_TEST_SUITE_P(Of, Reshape,
                         testing::Values(Layout{1, 2, 1}, Layout{2, 1, 1}, Layout{2, 2, 1}, Layout{4, 2, 1},
                                         Layout{2, 2, 2}));

}  // namespace
}  // namespace falcon::reshape
