#include "multi_rank/run_harness.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "machine/cpu_cgroup.h"
#include "machine/net_namespace.h"
#include "machine/program.h"
#include "run/node_network.h"

namespace falcon::tests {
namespace {

using namespace std::chrono_literals;

int redirect(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  char path[] = "/tmp/falcon-test-XXXXXX";
  path_ = ::mkdtemp(path);
}
// Ranks whose launcher was killed write there a moment longer.
TemporaryFolder::~TemporaryFolder() {
  std::error_code problem;
  EXPECT_TRUE(eventually([&] {
    std::filesystem::remove_all(path_, problem);
    return !problem;
  })) << path_
      << ": " << problem.message();
}

Started::Started(std::vector<std::string> command, std::map<std::string, std::string> environment) {
  std::vector<char*> words;
  for (auto& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  process_ = ::fork();
  if (process_ != 0) return;
  for (const char* inherited : {"NCCL_FALCON", "NCCL_FALCON_JOB", "RANK", "LD_LIBRARY_PATH"}) ::unsetenv(inherited);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::dup2(redirect(folder_.file("output")), STDOUT_FILENO);
  ::dup2(redirect(folder_.file("errors")), STDERR_FILENO);
  ::execv(words[0], words.data());
  ::_exit(126);
}

Started::~Started() {
  if (!running()) return;
  ::kill(process_, SIGKILL);
  wait();
}

void Started::signal(int number) const {
  ::kill(process_, number);
}

int Started::wait() {
  if (code_) return *code_;
  int status = 0;
  ::waitpid(process_, &status, 0);
  code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return *code_;
}

bool Started::running() {
  if (code_) return false;
  int status = 0;
  if (::waitpid(process_, &status, WNOHANG) == 0) return true;
  code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return false;
}

std::string Started::output() const {
  return contentOf(folder_.file("output"));
}
std::string Started::errors() const {
  return contentOf(folder_.file("errors"));
}

std::vector<std::string> falconCommand(std::vector<std::string> words) {
  words.insert(words.begin(), FALCON_BINARY);
  return words;
}

bool eventually(const std::function<bool()>& condition) {
  for (int attempt = 0; attempt < 6000; ++attempt) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

bool eventually(Started& program, const std::function<bool()>& condition) {
  while (program.running() && !condition()) std::this_thread::sleep_for(10ms);
  return condition();
}

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string contentOf(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

tools::JobDescription waitForDescription(const std::string& path) {
  eventually([&] { return std::filesystem::exists(path); });
  const auto job = tools::readDescription(path);
  return job ? *job : tools::JobDescription{};
}

bool isAlive(pid_t process) {
  const std::string stat = contentOf("/proc/" + std::to_string(process) + "/stat");
  return !stat.empty() && stat.find(") Z ") == std::string::npos;
}

Status limitSending(const tools::RankDescription& rank, const std::string& rate, const std::string& burst) {
  const auto inside = tools::openNetNamespace(rank.netNamespace);
  if (!inside) return inside.error();
  for (const std::vector<std::string>& change :
       {std::vector<std::string>{"qdisc", "add", "dev", rank.interface, "root", "handle", "1:", "htb", "default", "1"},
        {"class", "add", "dev", rank.interface, "parent", "1:", "classid", "1:1", "htb", "rate", rate, "burst",
         burst}}) {
    std::vector<std::string> command = {"tc"};
    command.insert(command.end(), change.begin(), change.end());
    if (const auto done = tools::runProgram({command, inside->get()}); !done) return done.error();
  }
  return {};
}

// In a child: the attempt is in another namespace for a moment.
std::optional<std::string> whyNoNodes() {
  Started attempt(falconCommand({"run", "-n", "1", "--nodes", "1", "--", "/bin/true"}));
  if (attempt.wait() == 0) return std::nullopt;
  return attempt.errors();
}

std::optional<std::string> whyNoCgroups() {
  Started attempt(falconCommand({"run", "-n", "1", "--cgroups", "--", "/bin/true"}));
  if (attempt.wait() == 0) return std::nullopt;
  return attempt.errors();
}

}  // namespace falcon::tests
