#include "machine/program.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/owned.h"

namespace falcon::tools {
namespace {

std::string readAll(int descriptor) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count > 0) {
      text.append(buffer, static_cast<size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      return text;
    }
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Failures to start are told apart from the program's own codes by text, which the parent reads with the output.
[[noreturn]] void becomeProgram(const ProgramRun& run, int output) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  if (run.netNamespace >= 0 && ::setns(run.netNamespace, CLONE_NEWNET) != 0) {
    const std::string text = fmt::format("cannot enter the network namespace: {}", std::strerror(errno));
    (void)!::write(STDERR_FILENO, text.data(), text.size());
    ::_exit(126);
  }
  std::vector<char*> words;
  for (const auto& word : run.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const char* path = std::getenv("PATH");
  ::setenv("PATH", ((path ? std::string(path) + ":" : std::string()) + "/usr/sbin:/sbin:/usr/bin:/bin").c_str(), 1);
  ::execvp(words[0], words.data());
  const std::string text = fmt::format("cannot run it: {}", std::strerror(errno));
  (void)!::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(127);
}

}  // namespace

Result<std::string> runProgram(const ProgramRun& run) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::system("cannot make a pipe: {}", std::strerror(errno));
  const FileDescriptor source(ends[0]);
  FileDescriptor output(ends[1]);

  const pid_t child = ::fork();
  if (child < 0) return Error::system("cannot start `{}`: {}", joined(run.command), std::strerror(errno));
  if (child == 0) becomeProgram(run, output.get());
  output.reset();
  std::string text = readAll(source.get());

  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return Error::system("`{}` failed: {}", joined(run.command), text.empty() ? "it said nothing" : text);
}

}  // namespace falcon::tools
