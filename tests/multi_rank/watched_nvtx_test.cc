// An application's NVTX ranges, as `falcon status` shows them of a job that `falcon run` has started.
#ifdef NVTX_PROBE_BINARY
#include <gtest/gtest.h>

#include <map>

#include "multi_rank/watched_job.h"

namespace falcon::tests {
namespace {

using nlohmann::json;

struct NvtxJob {
  explicit NvtxJob(std::map<std::string, std::string> more = {})
      : job(falconCommand({"run", "-n", "2", "--", NVTX_PROBE_BINARY}), environmentWith(std::move(more))) {}
  ~NvtxJob() {
    job.signal(SIGTERM);
    job.wait();
    std::filesystem::remove_all("/dev/shm/nccl-falcon-" + std::to_string(::getuid()) + "/" + name);
  }
  /// Of rank 0; null while the job is not there.
  json rank() const {
    const Said said({"status", name, "--json"});
    return said.json.is_array() ? said.json.at(0).at("ranks").at(0) : json();
  }

  const std::string name = "falcon-nvtx-" + std::to_string(::getpid());
  Started job;

 private:
  std::map<std::string, std::string> environmentWith(std::map<std::string, std::string> more) const {
    more["NCCL_FALCON_JOB"] = name;
    return more;
  }
};

TEST(NvtxRanges, OfTheLastIterationAreInTheStatus) {
  NvtxJob job;
  json ranges;
  const auto isSeen = [&] {
    const json rank = job.rank();
    if (!rank.is_object()) return false;
    ranges = rank.at("ranges");
    return ranges.contains("forward") && ranges.at("forward").at("times") == 1 && ranges.size() == 3;
  };
  ASSERT_TRUE(eventually(isSeen)) << ranges << job.job.errors();
  EXPECT_GE(ranges.at("forward").at("seconds").get<double>(), 0.005) << ranges;
  EXPECT_GE(ranges.at("backward").at("seconds").get<double>(), 0.010) << ranges;
  EXPECT_TRUE(ranges.contains("iteration #")) << ranges;
  EXPECT_EQ(ranges.size(), 3u) << ranges;
}

TEST(NvtxRanges, AreNotRecordedWhereNobodyWantsThem) {
  NvtxJob job(std::map<std::string, std::string>{{"NCCL_FALCON_NVTX", "off"}});
  json rank;
  const auto iterates = [&] {
    rank = job.rank();
    return rank.is_object() && rank.at("iterations") > 0;
  };
  ASSERT_TRUE(eventually(iterates)) << rank << job.job.errors();
  EXPECT_TRUE(rank.at("ranges").empty()) << rank;
}

}  // namespace
}  // namespace falcon::tests
#endif
