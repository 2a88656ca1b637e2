#include "reshape/checkpoints.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "harness/fork_alone.h"
#include "unit/reshape/power_cut_storage.h"
#include "unit/reshape/thread_exchange.h"

namespace falcon::reshape {
namespace {

namespace fs = std::filesystem;

/// 2 replicas of 2 stages: the weights are the stage's, the dice each rank's own.
constexpr int ranks = 4;
Place placeOf(Rank rank) {
  return {rank, ranks, 2, 2, 1, rank / 2, rank % 2, 0, true};
}

struct ARank {
  explicit ARank(Rank of) : rank(of) {
    const auto bytes = [](auto& list) { return reinterpret_cast<std::byte*>(list.data()); };
    EXPECT_TRUE(checkpoints.state().add({"weights", bytes(weights), weights.size() * sizeof(int), true}));
    EXPECT_TRUE(checkpoints.state().add({"dice", bytes(dice), dice.size() * sizeof(int), false}));
  }
  void train(int iteration) {
    std::fill(weights.begin(), weights.end(), 100 * iteration + rank % 2);
    std::fill(dice.begin(), dice.end(), 1000 * iteration + rank);
  }
  void expectState(int iteration) const {
    EXPECT_EQ(weights, std::vector<int>(weights.size(), 100 * iteration + rank % 2)) << rank;
    EXPECT_EQ(dice, std::vector<int>(dice.size(), 1000 * iteration + rank)) << rank;
  }

  const Rank rank;
  std::vector<int> weights = std::vector<int>(5000), dice = std::vector<int>(3);
  Checkpoints checkpoints;
};

class CheckpointsOnDisk : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "falcon-" + test->name() + "-" + std::to_string(getpid());
    fs::remove_all(folder_);
  }
  void TearDown() override {
    EXPECT_TRUE(lastWriterIsDone());
    fs::remove_all(folder_);
  }

  /// Checkpoints leave a writer to itself when they are destroyed: the folder is its own until it has ended.
  static bool lastWriterIsDone() {
    for (int tries = 0; tries < 6000; ++tries) {
      if (test::threadsBesidesThis() == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  /// A job that takes a checkpoint of each iteration, and goes on after it.
  void trainTo(int last, int keep = 3) {
    asRanks(ranks, [&](Rank rank, Exchange& exchange) {
      ARank self(rank);
      for (int iteration = 1; iteration <= last; ++iteration) {
        self.train(iteration);
        EXPECT_TRUE(
            self.checkpoints.take(folder_, static_cast<std::uint64_t>(iteration), keep, placeOf(rank), exchange));
        self.train(999);  // while it is written
      }
      EXPECT_TRUE(self.checkpoints.synchronize());
      EXPECT_EQ(self.checkpoints.stored(), static_cast<std::uint64_t>(last));
    });
  }
  void expectRestored(int iteration, bool broadcasts = true) {
    asRanks(
        ranks,
        [&](Rank rank, Exchange& exchange) {
          ARank self(rank);
          const auto restored = self.checkpoints.restore(folder_, placeOf(rank), exchange);
          ASSERT_TRUE(restored) << restored.error().message();
          ASSERT_EQ(*restored, iteration < 0 ? std::nullopt : std::optional<std::uint64_t>(iteration));
          self.expectState(std::max(iteration, 0));
        },
        broadcasts);
  }
  std::string file(int iteration, const std::string& name) const {
    return folderOf(folder_, static_cast<std::uint64_t>(iteration)) + "/" + name;
  }
  void spoil(const std::string& path) {
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(5);
    stream.put('\x7f');
    ASSERT_TRUE(stream.good()) << path;
  }

  std::string folder_;
};

TEST_F(CheckpointsOnDisk, TheNewestIsLoaded) {
  trainTo(3);
  expectRestored(3);
  expectRestored(3, false);
}

TEST_F(CheckpointsOnDisk, WithoutAnyNothingIsChanged) {
  asRanks(ranks, [&](Rank rank, Exchange& exchange) {
    ARank self(rank);
    self.train(7);
    const auto restored = self.checkpoints.restore(folder_, placeOf(rank), exchange);
    ASSERT_TRUE(restored);
    EXPECT_FALSE(*restored);
    self.expectState(7);
  });
}

TEST_F(CheckpointsOnDisk, OneThatIsIncompleteOnAnyRankDoesNotCount) {
  trainTo(3);
  fs::remove(file(3, "rank-2.manifest"));
  expectRestored(2);
  fs::remove(file(2, "stage-1-shard-0.manifest"));
  expectRestored(1);
  fs::remove(file(1, "rank-0.state"));
  asRanks(ranks, [&](Rank rank, Exchange& exchange) {
    ARank self(rank);
    EXPECT_EQ(*self.checkpoints.restore(folder_, placeOf(rank), exchange), std::nullopt);
  });
}

TEST_F(CheckpointsOnDisk, OneThatWasChangedDoesNotCountOnAnyRank) {
  trainTo(3);
  spoil(file(3, "stage-0-shard-0.state"));
  expectRestored(2);
  spoil(file(2, "rank-3.state"));
  expectRestored(1);
}

TEST_F(CheckpointsOnDisk, TheNewestAreKeptThatAllHave) {
  trainTo(6, 2);
  // The last one's writers knew that the fifth was complete: it and the one before stay, and itself.
  for (const int iteration : {4, 5, 6}) EXPECT_TRUE(fs::exists(file(iteration, "rank-1.manifest"))) << iteration;
  for (const int iteration : {1, 2, 3})
    EXPECT_FALSE(fs::exists(fs::path(file(iteration, "")).parent_path())) << iteration;
  expectRestored(6);
}

TEST_F(CheckpointsOnDisk, AHostWithAFolderOfItsOwnIsSeenFromTheSecondOneOn) {
  asRanks(ranks, [&](Rank rank, Exchange& exchange) {
    ARank self(rank);
    const std::string folder = folder_ + (rank < 2 ? "/here" : "/there");
    ASSERT_TRUE(self.checkpoints.take(folder, 1, 2, placeOf(rank), exchange));
    EXPECT_TRUE(self.checkpoints.seesOthers()) << "nothing is known yet";
    ASSERT_TRUE(self.checkpoints.take(folder, 2, 2, placeOf(rank), exchange));
    EXPECT_EQ(self.checkpoints.seesOthers(), rank < 2) << rank;
    // Another folder, which all have.
    ASSERT_TRUE(self.checkpoints.take(folder_, 3, 2, placeOf(rank), exchange));
    ASSERT_TRUE(self.checkpoints.take(folder_, 4, 2, placeOf(rank), exchange));
    EXPECT_TRUE(self.checkpoints.seesOthers()) << rank;
  });
}

TEST_F(CheckpointsOnDisk, ReplicatedStateIsWrittenOnce) {
  trainTo(1);
  std::size_t states = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(file(1, "x")).parent_path()))
    states += entry.path().extension() == ".state";
  EXPECT_EQ(states, 2u + ranks) << "two stages', and each rank's own";
}

TEST_F(CheckpointsOnDisk, WhatCannotBeWrittenIsToldOnceAndTheOldOneStays) {
  trainTo(1);
  // A file where the folder of the next one has to be.
  std::ofstream(folderOf(folder_, 2)) << "in the way";
  asRanks(ranks, [&](Rank rank, Exchange& exchange) {
    ARank self(rank);
    self.train(2);
    EXPECT_TRUE(self.checkpoints.take(folder_, 2, 1, placeOf(rank), exchange));
    const Status first = self.checkpoints.synchronize();
    ASSERT_FALSE(first);
    EXPECT_NE(first.error().message().find("iteration 2 could not be kept"), std::string::npos);
    EXPECT_TRUE(self.checkpoints.synchronize());
  });
  expectRestored(1);
}

// A failure of one rank's must not cost the others what nobody else has a newer one of.
TEST_F(CheckpointsOnDisk, TheOnesKeptAreThoseThatAllHaveWhereSomeCouldNotBeWritten) {
  asRanks(ranks, [&](Rank rank, Exchange& exchange) {
    ARank self(rank);
    for (const int iteration : {1, 2, 3, 4, 5}) {
      // In the way of ranks 0 and 2, whose replicated part or own it is: of the second and third.
      if (iteration == 2 && rank == 2) fs::create_directories(file(2, "rank-2.state.draft/in the way"));
      if (iteration == 3 && rank == 0) fs::create_directories(file(3, "rank-0.state.draft/in the way"));
      self.train(iteration);
      ASSERT_TRUE(self.checkpoints.take(folder_, static_cast<std::uint64_t>(iteration), 2, placeOf(rank), exchange));
      const bool isStored = (iteration != 2 || rank != 2) && (iteration != 3 || rank != 0);
      EXPECT_EQ(static_cast<bool>(self.checkpoints.synchronize()), isStored);
      EXPECT_EQ(self.checkpoints.isTakenStored(), isStored);
    }
    EXPECT_TRUE(self.checkpoints.isTakenStored()) << "what failed before is over";
  });
  for (const int iteration : {1, 4, 5}) EXPECT_TRUE(fs::exists(file(iteration, "rank-1.manifest"))) << iteration;
  fs::remove_all(fs::path(file(5, "")).parent_path());
  expectRestored(4);
  fs::remove_all(fs::path(file(4, "")).parent_path());
  expectRestored(1);
}

TEST_F(CheckpointsOnDisk, AFolderThatCannotBeReadIsNotTakenForAnEmptyOne) {
  std::ofstream(folder_) << "a file";
  asRanks(ranks, [&](Rank rank, Exchange& exchange) {
    ARank self(rank);
    const auto restored = self.checkpoints.restore(rank == 2 ? folder_ : folder_ + "-none", placeOf(rank), exchange);
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().code(), ErrorCode::system);
    EXPECT_NE(restored.error().message().find("rank 2 cannot look for checkpoints"), std::string::npos);
  });
}

/// The machine's own, whose first step takes until the test says so.
class StoppedStorage final : public Storage {
 public:
  Status makeFolder(const std::string& path) override {
    while (!goesOn) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return real_.makeFolder(path);
  }
  Result<std::unique_ptr<Draft>> create(const std::string& path) override { return real_.create(path); }
  Status rename(const std::string& from, const std::string& to) override { return real_.rename(from, to); }
  Status syncFolder(const std::string& path) override { return real_.syncFolder(path); }
  Result<std::vector<std::string>> list(const std::string& path) override { return real_.list(path); }
  Result<std::uint64_t> size(const std::string& path) override { return real_.size(path); }
  Status read(const std::string& path, std::uint64_t offset, std::span<std::byte> bytes) override {
    return real_.read(path, offset, bytes);
  }
  Status remove(const std::string& path) override { return real_.remove(path); }

  std::atomic<bool> goesOn{false};

 private:
  Storage& real_ = fileStorage();
};

TEST_F(CheckpointsOnDisk, AreStillWrittenWhenNobodyWaitsForThem) {
  // Its last steps use the storage, and nobody can wait for them: it stays.
  static auto& storage = *new StoppedStorage;
  storage.goesOn = false;
  asRanks(1, [&](Rank, Exchange& exchange) {
    int value = 7;
    Checkpoints checkpoints(storage);
    ASSERT_TRUE(checkpoints.state().add({"a", reinterpret_cast<std::byte*>(&value), sizeof value}));
    ASSERT_TRUE(checkpoints.take(folder_, 1, 1, {}, exchange));
    EXPECT_FALSE(checkpoints.stored());
  });  // destroyed, though the storage does not answer
  EXPECT_FALSE(fs::exists(folder_));
  storage.goesOn = true;
  EXPECT_TRUE(lastWriterIsDone());
  EXPECT_TRUE(fs::exists(file(1, "rank-0.manifest")));
}

TEST_F(CheckpointsOnDisk, DifferentNumbersAreRefusedOnAllRanks) {
  asRanks(ranks, [&](Rank rank, Exchange& exchange) {
    ARank self(rank);
    const Status taken = self.checkpoints.take(folder_, rank == 2 ? 8u : 7u, 1, placeOf(rank), exchange);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code(), ErrorCode::invalidUsage);
  });
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(CheckpointsOnDisk, WithoutStateThereIsNothingToKeep) {
  asRanks(1, [&](Rank, Exchange& exchange) {
    Checkpoints checkpoints;
    EXPECT_EQ(checkpoints.take(folder_, 1, 1, {}, exchange).error().code(), ErrorCode::invalidUsage);
    EXPECT_EQ(checkpoints.restore(folder_, {}, exchange).error().code(), ErrorCode::invalidUsage);
  });
}

TEST(RegisteredState, NamesAreCheckedAndTaken) {
  RegisteredState state;
  std::byte byte{};
  EXPECT_TRUE(state.add({"b", &byte, 1}));
  EXPECT_TRUE(state.add({"a", &byte, 1, true}));
  for (const std::string& wrong : {std::string(), std::string("two words"), std::string("line\nfeed"),
                                   std::string(128, 'x'), std::string("b"), std::string("\xc3\xa4")})
    EXPECT_FALSE(state.add({wrong, &byte, 1})) << wrong;
  EXPECT_TRUE(state.add({std::string(127, 'x'), &byte, 1}));
  EXPECT_FALSE(state.add({"null", nullptr, 1}));
  EXPECT_FALSE(state.add({"empty", &byte, 0}));
  EXPECT_EQ(state.buffers(false).size(), 2u);
  EXPECT_TRUE(state.remove("b"));
  EXPECT_FALSE(state.remove("b"));
  EXPECT_EQ(state.buffers(true).front().name, "a");
}

}  // namespace
}  // namespace falcon::reshape
