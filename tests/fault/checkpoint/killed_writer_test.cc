// One rank of a job is killed at every step of writing a checkpoint, on a real file system: the newest checkpoint that
// is complete on all ranks loads intact every time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "harness/fork_alone.h"
#include "reshape/checkpoints.h"
#include "unit/reshape/thread_exchange.h"

namespace falcon::reshape {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAreArray;

constexpr int ranks = 2;
Place placeOf(Rank rank) {
  return {rank, ranks, 1, ranks, 1, 0, rank, 0, true};
}

/// Kills its process when the step of that number is to be done; a write is then half done. Tells the steps' names.
class DeadlyStorage final : public Storage {
 public:
  DeadlyStorage(int lastStep, const std::string& notes) : lastStep_(lastStep), notes_(notes) {}

  Status makeFolder(const std::string& path) override { return note("make the folder", path), real_.makeFolder(path); }
  Result<std::unique_ptr<Draft>> create(const std::string& path) override {
    note("create", path);
    auto real = real_.create(path);
    if (!real) return real.error();
    return std::unique_ptr<Draft>(std::make_unique<DeadlyDraft>(*this, std::move(*real), path));
  }
  Status rename(const std::string& from, const std::string& to) override {
    return note("rename", from), real_.rename(from, to);
  }
  Status syncFolder(const std::string& path) override { return note("sync the folder", path), real_.syncFolder(path); }
  Result<std::vector<std::string>> list(const std::string& path) override { return real_.list(path); }
  Result<std::uint64_t> size(const std::string& path) override { return real_.size(path); }
  Status read(const std::string& path, std::uint64_t offset, std::span<std::byte> bytes) override {
    return real_.read(path, offset, bytes);
  }
  Status remove(const std::string& path) override { return note("remove", path), real_.remove(path); }

 private:
  class DeadlyDraft final : public Draft {
   public:
    DeadlyDraft(DeadlyStorage& of, std::unique_ptr<Draft> real, std::string path)
        : of_(of), real_(std::move(real)), path_(std::move(path)) {}
    Status write(std::span<const std::byte> bytes) override {
      if (of_.isNext()) (void)real_->write(bytes.first(bytes.size() / 2));
      return of_.note("write", path_), real_->write(bytes);
    }
    Status sync() override { return of_.note("sync", path_), real_->sync(); }

   private:
    DeadlyStorage& of_;
    const std::unique_ptr<Draft> real_;
    const std::string path_;
  };

  bool isNext() const { return step_ == lastStep_; }
  void note(const char* what, const std::string& path) {
    notes_ << what << " " << fs::path(path).filename().string() << std::endl;
    if (isNext()) raise(SIGKILL);
    ++step_;
  }

  Storage& real_ = fileStorage();
  const int lastStep_;
  int step_ = 0;
  std::ofstream notes_;
};

std::vector<std::string> linesOf(const std::string& file) {
  std::ifstream stream(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The state of a rank at an iteration.
std::vector<int> stateOf(Rank rank, int iteration) {
  return std::vector<int>(4000, 100 * iteration + rank);
}

Status take(Checkpoints& checkpoints, const std::string& folder, Rank rank, int iteration, Exchange& exchange) {
  std::vector<int> state = stateOf(rank, iteration);
  if (const Status added = checkpoints.state().add(
          {"weights", reinterpret_cast<std::byte*>(state.data()), state.size() * sizeof(int), rank == 0});
      !added)
    return added;
  const Status taken = checkpoints.take(folder, static_cast<std::uint64_t>(iteration), 1, placeOf(rank), exchange);
  const Status removed = checkpoints.state().remove("weights");
  if (!taken || !removed) return taken;
  return checkpoints.synchronize();
}

/// Where the other rank is a process of its own that has the same checkpoints.
class OtherRankSaysTheSame final : public Exchange {
 public:
  Result<std::vector<std::string>> allGather(std::string_view mine) override {
    return std::vector<std::string>(ranks, std::string(mine));
  }
  bool canBroadcast() const override { return true; }
  Status broadcast(int, Rank, std::span<const std::span<std::byte>>) override { return {}; }
};

/// A rank that comes back to its second checkpoint, and takes the third.
bool goOnTo3(Storage& storage, const std::string& folder, Rank rank) {
  constexpr std::uint64_t run = 2;  // of both ranks
  Checkpoints checkpoints(storage, run);
  std::vector<int> state(4000);
  OtherRankSaysTheSame exchange;
  if (!checkpoints.state().add(
          {"weights", reinterpret_cast<std::byte*>(state.data()), state.size() * sizeof(int), rank == 0}))
    return false;
  const auto restored = checkpoints.restore(folder, placeOf(rank), exchange);
  return checkpoints.state().remove("weights") && restored && *restored == 2u && state == stateOf(rank, 2) &&
         take(checkpoints, folder, rank, 3, exchange);
}

TEST(AKilledWriter, LeavesTheNewestCompleteCheckpointIntactAtEveryStep) {
  // Rank 0 writes what all replicas have, rank 1 its own; the one that is killed is each in turn.
  for (const Rank victim : {0, 1}) {
    const std::string part = victim == 0 ? "stage-0-shard-0" : "rank-1";
    const std::vector<std::string> steps{
        // the checkpoint
        "make the folder iteration-000000000003", "create " + part + ".state.draft", "write " + part + ".state.draft",
        "sync " + part + ".state.draft", "rename " + part + ".state.draft", "sync the folder iteration-000000000003",
        "create " + part + ".manifest.draft", "write " + part + ".manifest.draft", "sync " + part + ".manifest.draft",
        "rename " + part + ".manifest.draft", "sync the folder iteration-000000000003", "sync the folder checkpoints",
        // and what is older than the newest that all have
        "remove " + part + ".manifest", "remove " + part + ".state", "remove iteration-000000000001"};
    const std::size_t renamed = 9;  // from the next step on it is whole
    for (std::size_t last = 0; last <= steps.size(); ++last) {
      const std::string step = last < steps.size() ? steps[last] : "nothing";
      SCOPED_TRACE("rank " + std::to_string(victim) + " is killed at: " + step);
      const std::string base = testing::TempDir() + "falcon-killed-" + std::to_string(getpid());
      fs::remove_all(base);
      fs::create_directories(base);
      const std::string folder = base + "/checkpoints", notes = base + "/notes";
      asRanks(ranks, [&](Rank rank, Exchange& exchange) {
        Checkpoints checkpoints;
        for (const int iteration : {1, 2}) EXPECT_TRUE(take(checkpoints, folder, rank, iteration, exchange));
      });
      ASSERT_TRUE(goOnTo3(fileStorage(), folder, 1 - victim));
      const pid_t child = test::forkAlone();
      if (child == 0) {
        DeadlyStorage storage(static_cast<int>(last), notes);
        _exit(goOnTo3(storage, folder, victim) ? 0 : 1);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      const auto noted = linesOf(notes);
      if (last < steps.size()) {
        ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << testing::PrintToString(noted);
        EXPECT_THAT(noted, ElementsAreArray(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(last) + 1));
      } else {
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        EXPECT_THAT(noted, ElementsAreArray(steps)) << "a step that is not named here is not tested";
      }
      asRanks(ranks, [&](Rank rank, Exchange& exchange) {
        Checkpoints checkpoints;
        std::vector<int> state(4000);
        EXPECT_TRUE(checkpoints.state().add(
            {"weights", reinterpret_cast<std::byte*>(state.data()), state.size() * sizeof(int), rank == 0}));
        const auto restored = checkpoints.restore(folder, placeOf(rank), exchange);
        ASSERT_TRUE(restored) << restored.error().message();
        const int expected = last > renamed ? 3 : 2;
        ASSERT_EQ(*restored, static_cast<std::uint64_t>(expected));
        EXPECT_EQ(state, stateOf(rank, expected));
      });
      fs::remove_all(base);
    }
  }
}

}  // namespace
}  // namespace falcon::reshape
