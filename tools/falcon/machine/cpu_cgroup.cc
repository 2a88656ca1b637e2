#include "machine/cpu_cgroup.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "base/owned.h"

#include <fcntl.h>

namespace falcon::tools {
namespace {

namespace fs = std::filesystem;

constexpr int periodMicroseconds = 100'000;  // the kernel's default

// The kernel answers with the write itself, so a buffered stream would lose the reason.
Status writeFile(const fs::path& path, const std::string& text) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) < 0)
    return Error::system("cannot write {} to {}: {}", text, path.string(), std::strerror(errno));
  return {};
}

Result<std::string> readFile(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) return Error::system("cannot read {}", path.string());
  std::string content = text.str();
  while (!content.empty() && content.back() == '\n') content.pop_back();
  return content;
}

}  // namespace

bool CpuCgroup::exists() const {
  return fs::exists(path_ / "cgroup.procs");
}
int CpuCgroup::version() const {
  return fs::exists(path_ / "cpu.shares") ? 1 : 2;
}

Status CpuCgroup::setShares(int groups) const {
  if (version() == 1) return writeFile(path_ / "cpu.shares", std::to_string(std::min(262'144, 1024 * groups)));
  return writeFile(path_ / "cpu.weight", std::to_string(std::min(10'000, 100 * groups)));
}

Status CpuCgroup::add(pid_t process) const {
  return writeFile(path_ / "cgroup.procs", std::to_string(process));
}

std::vector<pid_t> CpuCgroup::processes() const {
  std::ifstream file(path_ / "cgroup.procs");
  std::vector<pid_t> found;
  for (pid_t process; file >> process;) found.push_back(process);
  return found;
}

Result<std::string> CpuCgroup::quota() const {
  return readFile(path_ / (version() == 1 ? "cpu.cfs_quota_us" : "cpu.max"));
}

Status CpuCgroup::setQuota(double cores) const {
  const long quota = std::lround(std::max(leastQuota, cores) * periodMicroseconds);
  if (version() == 2) return writeFile(path_ / "cpu.max", fmt::format("{} {}", quota, periodMicroseconds));
  if (auto done = writeFile(path_ / "cpu.cfs_period_us", std::to_string(periodMicroseconds)); !done) return done;
  return writeFile(path_ / "cpu.cfs_quota_us", std::to_string(quota));
}

Status CpuCgroup::restoreQuota(const std::string& text) const {
  return writeFile(path_ / (version() == 1 ? "cpu.cfs_quota_us" : "cpu.max"), text);
}

Result<CpuCgroup::Throttling> CpuCgroup::throttling() const {
  auto text = readFile(path_ / "cpu.stat");
  if (!text) return text.error();
  std::istringstream lines(*text);
  Throttling found;
  std::string name;
  for (std::uint64_t value = 0; lines >> name >> value;) {
    if (name == "nr_periods") found.periods = value;
    if (name == "nr_throttled") found.throttledPeriods = value;
    if (name == "throttled_time") found.throttledSeconds = static_cast<double>(value) * 1e-9;  // version 1
    if (name == "throttled_usec") found.throttledSeconds = static_cast<double>(value) * 1e-6;  // version 2
  }
  return found;
}

namespace {

struct Mount {
  fs::path path;
  int version = 0;
};

bool hasWord(const std::string& list, const std::string& word, char separator) {
  std::istringstream words(list);
  for (std::string one; std::getline(words, one, separator);)
    if (one == word) return true;
  return false;
}

// The mount of the cpu controller: version 1 where it is mounted so, else version 2 where it lists the controller.
Result<Mount> cpuMount() {
  std::ifstream mounts("/proc/self/mounts");
  std::string line;
  Mount second;
  while (std::getline(mounts, line)) {
    std::istringstream fields(line);
    std::string device, path, type, options;
    fields >> device >> path >> type >> options;
    if (type == "cgroup" && hasWord(options, "cpu", ',')) return Mount{path, 1};
    if (type != "cgroup2") continue;
    const auto controllers = readFile(fs::path(path) / "cgroup.controllers");
    if (controllers && hasWord(*controllers, "cpu", ' ')) second = {path, 2};
  }
  if (second.version == 2) return second;
  return Error::system(
      "no cpu cgroup controller is mounted on this machine; leave out --cgroups, or use --cgroups=try");
}

// Path of a process ("self": this one) inside the hierarchy of that version, "/" where it cannot be told.
std::string pathInside(const std::string& process, int version) {
  std::ifstream file("/proc/" + process + "/cgroup");
  std::string line;
  while (std::getline(file, line)) {  // 4:cpu,cpuacct:/path, or 0::/path of version 2
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (version == 1 ? hasWord(controllers, "cpu", ',') : controllers.empty()) return line.substr(second + 1);
  }
  return "/";
}

fs::path jobPath(const fs::path& controller, const std::string& run) {
  return controller / ("falcon-" + run);
}

Result<CpuCgroup> makeGroup(const fs::path& path, int shares) {
  std::error_code error;
  if (!fs::create_directory(path, error) && error)
    return Error::system("cannot make the cgroup {}: {}; run as root, leave out --cgroups, or use --cgroups=try",
                         path.string(), error.message());
  CpuCgroup group(path);
  if (auto done = group.setShares(shares); !done) return done.error();
  return group;
}

// Version 2 hands a controller down only where it is switched on in the folder above.
Status delegateCpu(const fs::path& folder) {
  const auto enabled = readFile(folder / "cgroup.subtree_control");
  if (enabled && hasWord(*enabled, "cpu", ' ')) return {};
  return writeFile(folder / "cgroup.subtree_control", "+cpu");
}

Result<JobCgroups> tryToMake(const fs::path& controller, const std::string& run, int ranks) {
  const bool second = !fs::exists(controller / "cpu.shares");
  if (second)
    if (auto done = delegateCpu(controller); !done) return done.error();
  auto job = makeGroup(jobPath(controller, run), ranks);
  if (!job) return job.error();
  if (second)
    if (auto done = delegateCpu(job->path()); !done) return done.error();
  JobCgroups made{*job, {}};
  for (int rank = 0; rank < ranks; ++rank) {
    auto group = makeGroup(job->path() / fmt::format("rank{}", rank), 1);
    if (!group) return group.error();
    made.ranks.push_back(*group);
  }
  return made;
}

std::vector<fs::path> foldersIn(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored)) found.push_back(entry.path());
  return found;
}

}  // namespace

Result<fs::path> findCpuController() {
  const auto mount = cpuMount();
  if (!mount) return mount.error();
  if (mount->version == 2) return mount->path;
  // In a container the path may be the host's and not be there: then the mount's root is this container's group.
  const fs::path own = (mount->path / fs::path(pathInside("self", 1)).relative_path()).lexically_normal();
  return fs::exists(own / "cgroup.procs") ? own : mount->path;
}

Result<JobCgroups> makeJobCgroups(const fs::path& controller, const std::string& run, int ranks) {
  auto made = tryToMake(controller, run, ranks);
  if (!made) removeJobCgroups(controller, run);
  return made;
}

std::optional<CpuCgroup> rankCgroupOf(const fs::path& controller, pid_t process) {
  const fs::path inside = pathInside(std::to_string(process), CpuCgroup(controller).version());
  const fs::path job = inside.parent_path().filename();
  if (!job.string().starts_with("falcon-") || !inside.filename().string().starts_with("rank")) return std::nullopt;
  CpuCgroup group(controller / job / inside.filename());
  // A path that another view of the hierarchy gave may lead elsewhere: whoever is in the group is asked.
  const auto members = group.processes();
  if (std::find(members.begin(), members.end(), process) == members.end()) return std::nullopt;
  return group;
}

bool removeJobCgroups(const fs::path& controller, const std::string& run) {
  const fs::path job = jobPath(controller, run);
  // A killed process leaves its group only once the kernel has taken it apart.
  for (int attempt = 0; attempt < 500; ++attempt) {
    for (const auto& rank : foldersIn(job)) {
      for (const pid_t process : CpuCgroup(rank).processes()) ::kill(process, SIGKILL);
      ::rmdir(rank.c_str());
    }
    if (::rmdir(job.c_str()) == 0 || errno == ENOENT) return true;
    SystemClock::instance().sleep(10ms);
  }
  return false;
}

void removeStaleJobCgroups(const fs::path& controller) {
  for (const auto& folder : foldersIn(controller)) {
    const std::string name = folder.filename();
    if (!name.starts_with("falcon-")) continue;
    const pid_t launcher = static_cast<pid_t>(std::atol(name.c_str() + std::strlen("falcon-")));
    if (launcher <= 0 || ::kill(launcher, 0) == 0 || errno != ESRCH) continue;
    // Only empty groups go: a guardian may be at work in this one right now.
    for (const auto& rank : foldersIn(folder)) ::rmdir(rank.c_str());
    ::rmdir(folder.c_str());
  }
}

}  // namespace falcon::tools
