// Where a process's cgroup lies, and what it may use.
#include "base/cpu_cgroup.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace falcon {
namespace {

TEST(CpuCgroup, FindsTheCgroupOfVersionOne) {
  EXPECT_EQ(
      cpuCgroupFolders("5:memory:/m\n4:cpuset:/s\n3:cpu,cpuacct:/job/rank0\n",
                       "30 23 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
                       "31 23 0:30 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"),
      std::vector<std::string>{"/sys/fs/cgroup/cpu,cpuacct/job/rank0"});
}

TEST(CpuCgroup, FindsTheCgroupOfVersionTwo) {
  EXPECT_EQ(cpuCgroupFolders("0::/user.slice/rank0\n",
                             "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"),
            std::vector<std::string>{"/sys/fs/cgroup/user.slice/rank0"});
}

TEST(CpuCgroup, InAContainerOnlyPartOfTheTreeIsMounted) {
  EXPECT_EQ(cpuCgroupFolders("0::/docker/abc\n", "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 ro\n"),
            std::vector<std::string>{"/sys/fs/cgroup"});
  EXPECT_EQ(cpuCgroupFolders("0::/docker/abcd\n", "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 ro\n"),
            std::vector<std::string>{});
}

TEST(CpuCgroup, VersionOneBeforeTwoWhereBothAreThere) {
  EXPECT_EQ(cpuCgroupFolders("1:cpu:/a\n0::/b\n",
                             "32 31 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
                             "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"),
            (std::vector<std::string>{"/sys/fs/cgroup/cpu/a", "/sys/fs/cgroup/unified/b"}));
}

TEST(CpuCgroup, NonsenseFindsNothing) {
  EXPECT_TRUE(cpuCgroupFolders("", "").empty());
  EXPECT_TRUE(cpuCgroupFolders("garbage\n::\n", "one two\n - \n1 2 3 4 5 - cgroup2\n").empty());
}

/// A folder below a folder, with files to put there.
class CpuQuotas : public testing::Test {
 protected:
  CpuQuotas() {
    char path[] = "/tmp/falcon-quota-XXXXXX";
    outer_ = mkdtemp(path);
    inner_ = outer_ + "/rank0";
    std::filesystem::create_directory(inner_);
  }
  ~CpuQuotas() override { std::filesystem::remove_all(outer_); }
  static void put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  double cores() const {
    const auto found = smallestQuota(inner_);
    return found ? found->cores : 0;
  }

  std::string outer_, inner_;
};

TEST_F(CpuQuotas, OfNeitherVersionIsNone) {
  EXPECT_EQ(cores(), 0);
  put(inner_ + "/cpu.max", "max 100000\n");
  EXPECT_EQ(cores(), 0);
  std::filesystem::remove(inner_ + "/cpu.max");
  put(inner_ + "/cpu.cfs_quota_us", "-1\n");
  put(inner_ + "/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores(), 0);
  put(inner_ + "/cpu.cfs_quota_us", "nonsense\n");
  EXPECT_EQ(cores(), 0);
}

TEST_F(CpuQuotas, OfVersionOneIsItsShareOfThePeriod) {
  put(inner_ + "/cpu.cfs_quota_us", "150000\n");
  put(inner_ + "/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(cores(), 1.5);
}

TEST_F(CpuQuotas, OfAGroupAboveCountsWhereItIsSmaller) {
  put(outer_ + "/cpu.max", "200000 100000\n");
  EXPECT_DOUBLE_EQ(cores(), 2) << "the group itself has none";
  const auto shared = smallestQuota(inner_);
  EXPECT_EQ(shared, smallestQuota(outer_)) << "so its members share it with all of the group above";
  put(inner_ + "/cpu.max", "400000 100000\n");
  EXPECT_EQ(smallestQuota(inner_), shared);
  put(inner_ + "/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(cores(), 0.5);
  EXPECT_NE(smallestQuota(inner_)->group, shared->group);
}

}  // namespace
}  // namespace falcon
