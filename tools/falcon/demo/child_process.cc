#include "demo/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/owned.h"
#include "demo/interruption.h"

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

[[noreturn]] void fail(int report) {
  const int number = errno;
  (void)!write(report, &number, sizeof number);
  _exit(127);
}

bool open(int descriptor, const char* path, int flags) {
  const int opened = ::open(path, flags | O_CLOEXEC, 0644);
  return opened >= 0 && dup2(opened, descriptor) >= 0;
}

// Ends with the parent, whatever ends that: no job may go on that nobody watches.
[[noreturn]] void becomeProgram(const std::vector<char*>& words, const std::vector<char*>& settings,
                                const char* stdoutFile, const char* stderrFile, pid_t parent, int report) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);  // it died before the line above
  constexpr int anew = O_WRONLY | O_CREAT | O_TRUNC;
  if (!open(0, "/dev/null", O_RDONLY) || !open(1, stdoutFile, anew) || !open(2, stderrFile, anew)) fail(report);
  execvpe(words[0], words.data(), settings.data());
  fail(report);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const std::map<std::string, std::string>& extra,
                           const std::string& stdoutFile, const std::string& stderrFile) {
  std::vector<std::string> words = command, settings = environmentWith(extra);
  const std::vector<char*> wordPointers = pointers(words), settingPointers = pointers(settings);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("{} cannot be started: {}", words[0], std::strerror(errno)));
  const FileDescriptor watched(ends[0]);
  FileDescriptor report(ends[1]);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) becomeProgram(wordPointers, settingPointers, stdoutFile.c_str(), stderrFile.c_str(), parent, ends[1]);
  int failed = pid_ < 0 ? errno : 0;
  report.reset();
  while (pid_ > 0 && read(watched.get(), &failed, sizeof failed) < 0 && errno == EINTR) {
  }
  if (failed == 0) return;  // exec closed the pipe
  if (pid_ > 0) waitForEnd();
  throw std::runtime_error(fmt::format("{} cannot be started: {}", words[0], std::strerror(failed)));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)), code_(other.code_) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || exitCode()) return;
  terminate();
  for (int i = 0; i < 50 && !exitCode(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (!exitCode()) {
    kill(pid_, SIGKILL);
    waitForEnd();
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
  while (!exitCode()) {
    throwIfInterrupted();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return *code_;
}

void ChildProcess::waitForEnd() {
  int status = 0;
  while (!code_) {
    if (waitpid(pid_, &status, 0) == pid_)
      code_ = codeOf(status);
    else if (errno != EINTR)
      code_ = 127;
  }
}

std::string readFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace falcon::demo
