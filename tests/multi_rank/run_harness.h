// Starts the real `falcon` command and looks at what it does from outside.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "machine/description.h"

namespace falcon::tests {

/// A folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// A program that was started; killed at the end where it still runs.
class Started {
 public:
  explicit Started(std::vector<std::string> command, std::map<std::string, std::string> environment = {});
  ~Started();
  Started(const Started&) = delete;

  pid_t process() const { return process_; }
  void signal(int number) const;
  /// Its exit code, 128 + signal where it was killed.
  int wait();
  bool running();
  std::string output() const;
  std::string errors() const;

 private:
  TemporaryFolder folder_;
  pid_t process_ = -1;
  std::optional<int> code_;
};

/// The command line of `falcon` with these words.
std::vector<std::string> falconCommand(std::vector<std::string> words);
#ifdef PROBE_BINARY
/// The path of the program that a test has ranks run.
inline std::string probe() {
  return PROBE_BINARY;
}
#endif

/// Asks again and again until it is so, for at most a minute.
bool eventually(const std::function<bool()>& condition);
/// The same as long as the program runs.
bool eventually(Started& program, const std::function<bool()>& condition);

std::vector<std::string> linesOf(const std::string& text);
std::string contentOf(const std::string& path);
/// Waits until the job has written its description.
tools::JobDescription waitForDescription(const std::string& path);
bool isAlive(pid_t process);
/// What the rank's interface sends goes at this rate from now on; in tc's units.
Status limitSending(const tools::RankDescription& rank, const std::string& rate, const std::string& burst);

/// Why tests with namespaces or cgroups cannot run here; nothing where they can.
std::optional<std::string> whyNoNodes();
std::optional<std::string> whyNoCgroups();

}  // namespace falcon::tests
