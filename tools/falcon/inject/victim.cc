#include "inject/victim.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/format.h"
#include "jobs/job_files.h"
#include "machine/cpu_cgroup.h"
#include "machine/net_namespace.h"
#include "machine/processes.h"
#include "machine/program.h"

namespace falcon::tools {
namespace {

std::string folderOf(pid_t process) {
  return fmt::format("/proc/{}", process);
}

/// A variable of the process's environment at its start; "" where it is not set.
std::string variableOf(pid_t process, const std::string& name) {
  std::ifstream file(folderOf(process) + "/environ");
  for (std::string entry; std::getline(file, entry, '\0');)
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  return "";
}

ino_t namespaceOf(const std::string& folder) {
  struct stat found {};
  return ::stat((folder + "/ns/net").c_str(), &found) == 0 ? found.st_ino : 0;
}

/// Where it is reached, if it has a network namespace that is not ours.
void addNetwork(RankDescription& rank) {
  const std::string netNamespace = folderOf(rank.process) + "/ns/net";
  const auto opened = openNetNamespace(netNamespace);
  if (!opened) return;
  const auto text = runProgram({{"ip", "-o", "-4", "address", "show"}, opened->get()});
  if (!text) return;
  const auto chosen = chooseInterface(parseInterfaces(*text), variableOf(rank.process, "NCCL_SOCKET_IFNAME"));
  if (chosen.name.empty()) return;
  rank.netNamespace = netNamespace;
  rank.interface = chosen.name;
  rank.address = chosen.address;
}

Result<jobs::JobFiles> findRunning(const std::string& name) {
  for (auto& job : jobs::findJobs())
    if ((job.name == name || job.ranks.front().view.identity.job == name) && job.running()) return std::move(job);
  return Error::invalidArgument("no running job named {}; `falcon status` lists those of this user on this host", name);
}

}  // namespace

Status mayBeHarmed(pid_t process) {
  struct stat found {};
  if (process <= 0 || ::stat(folderOf(process).c_str(), &found) != 0)
    return Error::invalidArgument("there is no process {}", process);
  if (found.st_uid != ::geteuid())
    return Error::invalidArgument("process {} belongs to user {}, not to you ({}): only own processes may be harmed",
                                  process, found.st_uid, ::geteuid());
  std::error_code problem;
  if (std::filesystem::read_symlink(folderOf(process) + "/exe", problem).empty())
    return Error::invalidArgument("process {} is no program of yours: {}", process, problem.message());
  if (process == ::getpid() || descendantsOf(process).contains(::getpid()))
    return Error::invalidArgument("process {} started this command: it would stop itself", process);
  return {};
}

std::vector<Interface> parseInterfaces(const std::string& text) {
  std::vector<Interface> interfaces;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {  // 2: eth0    inet 10.1.0.2/24 brd ...
    std::istringstream words(line);
    std::string number, name, family, address;
    if (!(words >> number >> name >> family >> address) || family != "inet" || name == "lo") continue;
    interfaces.push_back({name, address.substr(0, address.find('/'))});
  }
  return interfaces;
}

Interface chooseInterface(const std::vector<Interface>& interfaces, const std::string& wish) {
  for (const Interface& one : interfaces) {
    const bool exactly = wish.starts_with('=');
    if (exactly ? one.name == wish.substr(1) : !wish.empty() && one.name.starts_with(wish)) return one;
  }
  return interfaces.empty() ? Interface{} : interfaces.front();
}

Result<JobDescription> describeProcess(pid_t process) {
  if (auto may = mayBeHarmed(process); !may) return may.error();
  RankDescription rank;
  rank.rank = 0;
  rank.process = process;
  JobDescription job{folderOf(process), "", process, process, 0, {rank}};
  return job;
}

Result<JobDescription> describeJob(const std::string& name, Rank victim) {
  const auto files = findRunning(name);
  if (!files) return files.error();
  JobDescription job{name, "", -1, -1, 0, {}};
  std::map<ino_t, int> nodes;
  const auto controller = findCpuController();
  for (const auto& file : files->ranks) {
    const Rank number = file.view.identity.jobRank;
    if (!file.alive || number < 0 || number > 1 << 20) continue;
    RankDescription rank;
    rank.rank = number;
    rank.process = static_cast<int>(file.view.pid);
    const ino_t netNamespace = namespaceOf(folderOf(rank.process));
    rank.node = nodes.try_emplace(netNamespace, static_cast<int>(nodes.size())).first->second;
    if (netNamespace != 0 && netNamespace != namespaceOf("/proc/self")) addNetwork(rank);
    if (const auto group = controller ? rankCgroupOf(*controller, rank.process) : std::nullopt)
      rank.cgroup = group->path();
    while (static_cast<Rank>(job.ranks.size()) <= number) {
      RankDescription elsewhere;
      elsewhere.rank = static_cast<Rank>(job.ranks.size());
      job.ranks.push_back(elsewhere);
    }
    job.ranks[static_cast<std::size_t>(number)] = rank;
  }
  const auto found = rankOf(job, victim);
  if (!found) return found.error();
  if (found->process <= 0) return Error::invalidArgument("rank {} of job {} does not run on this host", victim, name);
  if (auto may = mayBeHarmed(found->process); !may) return may.error();
  job.launcher = job.supervisor = found->process;
  return job;
}

Iterations iterationsOf(const std::string& name) {
  Iterations iterations;
  const auto files = findRunning(name);
  if (!files) return iterations;
  for (const auto& rank : files->ranks) {
    if (!rank.alive) continue;
    iterations.seconds = std::max(iterations.seconds, rank.view.iterationSeconds);
    iterations.ended = std::max(iterations.ended, rank.view.iterations);
  }
  return iterations;
}

}  // namespace falcon::tools
