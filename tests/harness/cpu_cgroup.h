// Puts the calling process into a cpu cgroup of its own, as a container would.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace falcon::test {

/// Where cgroups are not permitted, `entered()` is false and nothing has changed. Goes back to where it came from at
/// the end.
class CpuCgroup {
 public:
  explicit CpuCgroup(const std::string& name) {
    for (const std::string root : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"}) {
      const bool versionTwo = root == "/sys/fs/cgroup";
      if (!std::filesystem::exists(root + "/cgroup.procs")) continue;
      if (versionTwo && !offersCpu(root)) continue;
      root_ = root;
      path_ = root + "/" + name;
      if (::mkdir(path_.c_str(), 0755) != 0) return;
      entered_ = writePid(path_);
      return;
    }
  }
  ~CpuCgroup() {
    if (entered_) writePid(root_);
    ::rmdir(path_.c_str());
  }
  CpuCgroup(const CpuCgroup&) = delete;
  bool entered() const { return entered_; }

 private:
  static bool offersCpu(const std::string& root) {
    std::ifstream file(root + "/cgroup.subtree_control");
    std::string controllers;
    std::getline(file, controllers);
    return controllers.find("cpu") != std::string::npos;
  }
  static bool writePid(const std::string& path) {
    std::ofstream file(path + "/cgroup.procs");
    file << getpid() << std::flush;
    return file.good();
  }

  std::string root_, path_;
  bool entered_ = false;
};

}  // namespace falcon::test
