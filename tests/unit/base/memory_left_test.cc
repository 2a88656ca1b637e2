// What memory this process could have yet.
#include "base/memory_left.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/cpu_cgroup.h"

namespace falcon {
namespace {

TEST(MemoryLeft, OfTheMachineIsWhatTheKernelCallsAvailable) {
  EXPECT_EQ(availableMemory("MemTotal:       16300000 kB\nMemFree:          100000 kB\nMemAvailable:    8000000 kB\n"),
            8'000'000ull * 1024);
  EXPECT_EQ(availableMemory("MemTotal: 5 kB\n"), 0u) << "a kernel before 3.14";
  EXPECT_EQ(availableMemory(""), 0u);
  EXPECT_EQ(availableMemory("MemAvailable: nonsense"), 0u);
}

TEST(MemoryLeft, CgroupsAreThoseOfTheMemoryController) {
  EXPECT_EQ(cgroupFolders("memory", "5:memory:/m\n3:cpu,cpuacct:/job/rank0\n",
                          "30 23 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                          "31 23 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"),
            std::vector<std::string>{"/sys/fs/cgroup/memory/m"});
}

/// A folder below a folder, with files to put there.
class LimitedMemory : public testing::Test {
 protected:
  LimitedMemory() {
    char path[] = "/tmp/falcon-memory-XXXXXX";
    outer_ = mkdtemp(path);
    inner_ = outer_ + "/rank0";
    std::filesystem::create_directory(inner_);
  }
  ~LimitedMemory() override { std::filesystem::remove_all(outer_); }
  static void put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  std::vector<std::uint64_t> left() const {
    std::vector<std::uint64_t> bytes;
    for (const MemoryPool& pool : limitedMemory(inner_, "machine")) bytes.push_back(pool.bytesLeft);
    return bytes;
  }

  std::string outer_, inner_;
};

TEST_F(LimitedMemory, WithoutALimitIsNone) {
  EXPECT_TRUE(left().empty());
  put(inner_ + "/memory.max", "max\n");
  put(inner_ + "/memory.current", "100\n");
  EXPECT_TRUE(left().empty());
  put(inner_ + "/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_TRUE(left().empty()) << "what version 1 says for none";
  put(inner_ + "/memory.max", "nonsense\n");
  EXPECT_TRUE(left().empty());
}

TEST_F(LimitedMemory, IsTheLimitWithoutWhatIsUsedAndNotOnlyCached) {
  put(inner_ + "/memory.max", "1000\n");
  EXPECT_TRUE(left().empty()) << "what is used is not known";
  put(inner_ + "/memory.current", "700\n");
  EXPECT_EQ(left(), std::vector<std::uint64_t>{300});
  put(inner_ + "/memory.stat", "anon 400\nfile 300\ninactive_anon 50\ninactive_file 200\n");
  EXPECT_EQ(left(), std::vector<std::uint64_t>{500});
  put(inner_ + "/memory.high", "800\n");
  EXPECT_EQ(left(), std::vector<std::uint64_t>{300}) << "beyond it the kernel slows a cgroup down";
  put(inner_ + "/memory.current", "5000\n");
  EXPECT_EQ(left(), std::vector<std::uint64_t>{0});
  put(inner_ + "/memory.stat", "inactive_file 9000\n");
  EXPECT_EQ(left(), std::vector<std::uint64_t>{800}) << "the two files were read at different times";
}

TEST_F(LimitedMemory, OfVersionOneHasOtherFiles) {
  put(inner_ + "/memory.limit_in_bytes", "1000\n");
  put(inner_ + "/memory.usage_in_bytes", "700\n");
  put(inner_ + "/memory.stat", "inactive_file 10\ntotal_inactive_file 100\n");
  EXPECT_EQ(left(), std::vector<std::uint64_t>{400});
}

TEST_F(LimitedMemory, EveryLimitAboveCounts) {
  put(inner_ + "/memory.max", "1000\n");
  put(inner_ + "/memory.current", "0\n");
  put(outer_ + "/memory.max", "1500\n");
  put(outer_ + "/memory.current", "900\n");
  const auto pools = limitedMemory(inner_, "machine");
  ASSERT_EQ(pools.size(), 2u);
  EXPECT_EQ(pools[0].bytesLeft, 1000u);
  EXPECT_EQ(pools[1].bytesLeft, 600u);
  EXPECT_NE(pools[0].name, pools[1].name);
  EXPECT_THAT(pools[0].name, testing::StartsWith("machine "));
  // Whoever is in the outer one, too, names it alike.
  EXPECT_EQ(limitedMemory(outer_, "machine").at(0), pools[1]);
}

TEST(MemoryLeft, OfThisProcessIsKnownHere) {
  const auto pools = memoryPoolsOfThisProcess();
  ASSERT_FALSE(pools.empty());
  EXPECT_GT(pools[0].bytesLeft, 1u << 20);
}

}  // namespace
}  // namespace falcon
