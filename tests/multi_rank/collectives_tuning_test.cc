// Ranks whose tuning files differ must not choose differently.
#include <filesystem>
#include <fstream>

#include "harness/engine_rank.h"

namespace falcon::collectives {
namespace {

using test::ForkedRanks;
using test::joinCommunicator;
using test::SharedBoard;

constexpr int ranks = 3;
constexpr std::size_t count = 300;

/// Three files, for each rank one.
class Files {
 public:
  Files() {
    const char* algorithms[ranks] = {"ring", "segments", "tree"};
    for (int rank = 0; rank < ranks; ++rank)
      std::ofstream(pathOf(rank)) << "AllReduce node 2 0 - " << algorithms[rank] << '\n';
  }
  ~Files() {
    for (int rank = 0; rank < ranks; ++rank) std::filesystem::remove(pathOf(rank));
  }
  std::string pathOf(int rank) const {
    return testing::TempDir() + "nccl_falcon_tuning_" + std::to_string(owner_) + "." + std::to_string(rank);
  }

 private:
  const pid_t owner_ = getpid();
};

TEST(TuningFiles, RankZerosCountsForAll) {
  const Files files;
  SharedBoard board;
  ForkedRanks forked(ranks, [&](Rank rank) -> std::string {
    setenv("NCCL_FALCON_TUNING_FILE", files.pathOf(rank).c_str(), 1);
    const auto communicator = joinCommunicator(board, 0, rank, ranks);
    // In the order of ranks the sum is 1; a ring begins elsewhere in two of its segments, where the 1 is lost.
    const float values[ranks] = {1e8F, -1e8F, 1};
    const std::vector<float> in(count, values[rank]);
    std::vector<float> out(count, -1);
    Call call;
    call.send = in.data();
    call.receive = out.data();
    call.count = count;
    const Status done = test::run(*communicator, call);
    if (!done) return done.error().message();
    const auto ones = std::count(out.begin(), out.end(), 1.F);
    return ones > 0 && ones < static_cast<long>(count) ? "" : std::to_string(ones) + " sums are 1: that is no ring";
  });
  EXPECT_TRUE(forked.allRight());
}

}  // namespace
}  // namespace falcon::collectives
