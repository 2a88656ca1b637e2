// A program started beside us: its output in files, ended with us.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace falcon::demo {

/// Movable owner of one child. Destruction ends it: SIGTERM, and SIGKILL after five seconds. Also where this process is
/// killed: the child then gets SIGTERM. Used by the thread that made it, which must live as long.
class ChildProcess {
 public:
  /// Throws std::runtime_error when the program cannot be started. `extra` is added to the environment; "" removes a
  /// name.
  ChildProcess(const std::vector<std::string>& command, const std::map<std::string, std::string>& extra,
               const std::string& stdoutFile, const std::string& stderrFile);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  /// The exit code (128 + signal when killed) once it has ended; does not block.
  std::optional<int> exitCode();
  void terminate();
  /// Throws Interrupted when this process is asked to end meanwhile.
  int wait();

 private:
  void waitForEnd();

  pid_t pid_ = -1;
  std::optional<int> code_;
};

std::string readFile(const std::string& path);

}  // namespace falcon::demo
