#include "harness/rank_cgroups.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

namespace falcon::test {
namespace {

constexpr const char* prefix = "falcon-test-";

/// Version 1 where the cpu controller is mounted so, else version 2 where it hands the controller down; "" for neither.
std::string controller() {
  for (const char* folder : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"})
    if (std::filesystem::exists(std::string(folder) + "/cgroup.procs")) return folder;
  std::ifstream file("/sys/fs/cgroup/cgroup.subtree_control");
  for (std::string word; file >> word;)
    if (word == "cpu") return "/sys/fs/cgroup";
  return "";
}

std::string groupPath(int rank) {
  return controller() + "/" + prefix + std::to_string(getpid()) + "-" + std::to_string(rank);
}

bool put(const std::string& folder, pid_t process) {
  std::ofstream file(folder + "/cgroup.procs");
  file << process << std::flush;
  return file.good();
}

void removeStale() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(controller(), ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix)) continue;
    const auto owner = static_cast<pid_t>(std::atol(name.c_str() + std::strlen(prefix)));
    if (owner > 0 && kill(owner, 0) != 0 && errno == ESRCH) rmdir(entry.path().c_str());
  }
}

/// Skips the whole program where it was asked for cgroups and cannot have them.
class CgroupsOrNothing : public testing::Environment {
  void SetUp() override {
    std::string why;
    if (!RankCgroups::wanted() || RankCgroups::permitted(why)) return;
    // GoogleTest calls all tests passed then, none of which has run: the last line is what ctest looks for.
    GTEST_SKIP() << "no cpu cgroups here: " << why << "\n[  SKIPPED ] every test";
  }
};
[[maybe_unused]] const auto* const environment = testing::AddGlobalTestEnvironment(new CgroupsOrNothing);

}  // namespace

bool RankCgroups::wanted() {
  return std::getenv("FALCON_TEST_CGROUPS") != nullptr;
}

bool RankCgroups::permitted(std::string& why) {
  if (controller().empty()) {
    why = "no cpu controller is mounted";
    return false;
  }
  removeStale();
  const std::string trial = groupPath(0);
  // One of that name is a killed test's whose process had our number.
  if (mkdir(trial.c_str(), 0755) != 0 && errno != EEXIST) {
    why = "cannot make " + trial + ": " + std::strerror(errno);
    return false;
  }
  rmdir(trial.c_str());
  return true;
}

RankCgroups::RankCgroups(int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    paths_.push_back(groupPath(rank));
    if (mkdir(paths_.back().c_str(), 0755) != 0 && errno != EEXIST) ADD_FAILURE() << "cannot make " << paths_.back();
  }
}

RankCgroups::~RankCgroups() {
  for (const std::string& path : paths_) {
    // A process leaves its group only once the kernel has taken it apart.
    for (int attempt = 0; rmdir(path.c_str()) != 0 && errno == EBUSY && attempt < 1000; ++attempt)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_FALSE(std::filesystem::exists(path)) << path << " is left behind";
  }
}

bool RankCgroups::enter(int rank) const {
  return put(paths_[rank], getpid());
}

}  // namespace falcon::test
