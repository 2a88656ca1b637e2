#include "machine/processes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace falcon::tools {
namespace {

struct Relation {
  pid_t parent = 0;
  char state = '?';
};

// The name, in brackets, may itself hold blanks and brackets: the last one closes it.
std::optional<Relation> relationOf(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const auto nameEnd = line.rfind(')');
  if (nameEnd == std::string::npos || nameEnd + 4 >= line.size()) return std::nullopt;
  return Relation{static_cast<pid_t>(std::atol(line.c_str() + nameEnd + 4)), line[nameEnd + 2]};
}

std::multimap<pid_t, pid_t> childrenByParent() {
  std::multimap<pid_t, pid_t> children;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (std::isdigit(static_cast<unsigned char>(name[0])) == 0) continue;
    if (const auto relation = relationOf(entry.path())) children.emplace(relation->parent, std::atol(name.c_str()));
  }
  return children;
}

}  // namespace

std::set<pid_t> descendantsOf(pid_t ancestor) {
  const auto children = childrenByParent();
  std::set<pid_t> found;
  std::vector<pid_t> open{ancestor};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [begin, end] = children.equal_range(parent);
    for (auto child = begin; child != end; ++child)
      if (found.insert(child->second).second) open.push_back(child->second);
  }
  return found;
}

bool killDescendants(const std::set<pid_t>& spared, Nanoseconds limit) {
  auto& clock = SystemClock::instance();
  const Nanoseconds giveUp = clock.now() + limit;
  for (;;) {
    std::set<pid_t> left = descendantsOf(::getpid());
    for (const pid_t process : spared) left.erase(process);
    for (const pid_t process : left) ::kill(process, SIGKILL);
    for (const pid_t process : left)
      ::waitpid(process, nullptr, WNOHANG);  // an error for grandchildren: they come later
    if (left.empty()) return true;
    if (clock.now() >= giveUp) return false;
    clock.sleep(2ms);
  }
}

bool isStopped(pid_t process) {
  const auto relation = relationOf("/proc/" + std::to_string(process));
  return relation && relation->state == 'T';
}

pid_t targetOf(pid_t process) {
  return ::getpgid(process) == process ? -process : process;
}

std::optional<Nanoseconds> processorTimeOf(pid_t process) {
  clockid_t clock;
  timespec time;
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return std::nullopt;
  return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

}  // namespace falcon::tools
