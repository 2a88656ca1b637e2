// NCCL_FALCON_TUNING_FILE through the C ABI.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "abi/ranks.h"

namespace falcon::abi {
namespace {

constexpr int ranks = 3;
constexpr size_t tunedCount = 300;

/// A file that is gone at the end.
class File {
 public:
  explicit File(const std::string& name, const std::string& text = "")
      : path_(testing::TempDir() + "nccl_falcon_" + name + std::to_string(getpid())) {
    std::ofstream(path_) << text;
  }
  ~File() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

/// Sums that depend on the order in which the ranks are added: in the order of ranks each is 1. A ring begins elsewhere
/// in two of its three segments, where the 1 is lost beside 1e8.
bool addsInTheOrderOfRanks(int rank, ncclComm_t comm) {
  const float values[ranks] = {1e8F, -1e8F, 1};
  std::vector<float> in(tunedCount, values[rank]), out(tunedCount);
  EXPECT_EQ(ncclSuccess, ncclAllReduce(in.data(), out.data(), tunedCount, ncclFloat, ncclSum, comm, noStream));
  return out == std::vector<float>(tunedCount, 1.F);
}

void expectOrder(bool ofRanks) {
  withRanks(ranks, [&](int rank, ncclComm_t comm) {
    EXPECT_EQ(addsInTheOrderOfRanks(rank, comm), ofRanks);
    std::vector<int> in(tunedCount * ranks), out(tunedCount * ranks);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i) * (rank + 1);
    NCCL_OK(ncclAllReduce(in.data(), out.data(), in.size(), ncclInt, ncclSum, comm, noStream));
    for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<int>(i) * 6);
    NCCL_OK(ncclAlltoAll(in.data(), out.data(), tunedCount, ncclInt, comm, noStream));
    for (size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], static_cast<int>(static_cast<size_t>(rank) * tunedCount + i % tunedCount) *
                            static_cast<int>(i / tunedCount + 1));
  });
}

TEST(TuningFile, ChangesTheAlgorithmAndNoResult) {
  const File direct("direct", "AllReduce node 2 0 - segments\nAlltoAll node 2 0 - direct\n");
  const File ring("ring", "AllReduce node 2 0 - ring\nAlltoAll node 2 0 - messages\n");
  inFreshChild({{"NCCL_FALCON_TUNING_FILE", direct.path()}}, [] { expectOrder(true); });
  inFreshChild({{"NCCL_FALCON_TUNING_FILE", ring.path()}}, [] { expectOrder(false); });
}

TEST(TuningFile, ABadOneIsToldOnceWithFileAndLineAndIgnored) {
  const File bad("bad", "AllReduce node 2 0 - ring\nAllReduce node 2 0 - rings\n");
  const File log("log");
  inFreshChild({{"NCCL_FALCON_TUNING_FILE", bad.path()}, {"NCCL_DEBUG", "WARN"}, {"NCCL_DEBUG_FILE", log.path()}}, [] {
    expectOrder(true);
    expectOrder(true);
  });
  if (IsSkipped()) return;  // see inFreshChild()
  const std::string text = log.text();
  const size_t first =
      text.find("NCCL_FALCON_TUNING_FILE=" + bad.path() + ": line 2: AllReduce has no algorithm 'rings'");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find("falcon tune", first), std::string::npos) << text;
  EXPECT_EQ(text.find("no such parameter"), std::string::npos) << text;
  EXPECT_EQ(text.find("NCCL_FALCON_TUNING_FILE", first + 1), std::string::npos) << text;
}

TEST(TuningFile, AMissingOneIsIgnoredToo) {
  inFreshChild({{"NCCL_FALCON_TUNING_FILE", "/nonexistent/tuning"}}, [] { expectOrder(true); });
}

}  // namespace
}  // namespace falcon::abi
