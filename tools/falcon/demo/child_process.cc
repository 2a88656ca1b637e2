#include "demo/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

extern char** environ;

namespace falcon::demo {
namespace {

int codeOf(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::vector<std::string> environmentWith(const std::map<std::string, std::string>& extra) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string setting = *entry;
    if (!extra.contains(setting.substr(0, setting.find('=')))) all.push_back(setting);
  }
  for (const auto& [name, value] : extra)
    if (!value.empty()) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const std::map<std::string, std::string>& extra,
                           const std::string& stdoutFile, const std::string& stderrFile) {
  std::vector<std::string> words = command, settings = environmentWith(extra);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, stdoutFile.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addopen(&actions, 2, stderrFile.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int failed =
      posix_spawnp(&pid_, words[0].c_str(), &actions, nullptr, pointers(words).data(), pointers(settings).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error(fmt::format("{} cannot be started: {}", words[0], std::strerror(failed)));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)), code_(other.code_) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || exitCode()) return;
  terminate();
  for (int i = 0; i < 50 && !exitCode(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (!exitCode()) {
    kill(pid_, SIGKILL);
    wait();
  }
}

std::optional<int> ChildProcess::exitCode() {
  if (code_) return code_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) code_ = codeOf(status);
  return code_;
}

void ChildProcess::terminate() {
  if (!exitCode()) kill(pid_, SIGTERM);
}

int ChildProcess::wait() {
  int status = 0;
  while (!code_) {
    if (waitpid(pid_, &status, 0) == pid_)
      code_ = codeOf(status);
    else if (errno != EINTR)
      code_ = 127;
  }
  return *code_;
}

std::string readFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace falcon::demo
