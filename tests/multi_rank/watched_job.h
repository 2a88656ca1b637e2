// A job of stuck_probe that is looked at from outside.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "multi_rank/run_harness.h"

namespace falcon::tests {

/// Four ranks; what they leave in shared memory goes with the object.
class WatchedJob {
 public:
  explicit WatchedJob(const std::string& what) : WatchedJob(what, {}) {}
  /// @param more  further words for stuck_probe
  /// @param options  for `falcon run`
  WatchedJob(const std::string& what, const std::vector<std::string>& more,
             const std::vector<std::string>& options = {})
      : name(freshName("falcon-watched-" + what + "-" + std::to_string(::getpid()))),
        job(commandFor(what, more, options), {{"NCCL_FALCON_JOB", name}}) {}
  ~WatchedJob() {
    killRanks();
    job.signal(SIGTERM);
    job.wait();
    freshName(name);
  }

  /// All at once, also those that are stopped.
  void killRanks();

  const std::string name;
  Started job;

 private:
  /// Nothing is left of a job of that name.
  static std::string freshName(const std::string& name) {
    std::filesystem::remove_all("/dev/shm/nccl-falcon-" + std::to_string(::getuid()) + "/" + name);
    return name;
  }
  static std::vector<std::string> commandFor(const std::string& what, const std::vector<std::string>& more,
                                             const std::vector<std::string>& options) {
    auto command = falconCommand({"run", "-n", "4"});
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"--", probe(), what});
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
};

/// What `falcon` with these words said.
struct Said {
  explicit Said(std::vector<std::string> words) {
    Started command(falconCommand(std::move(words)));
    code = command.wait();
    output = command.output();
    errors = command.errors();
    json = nlohmann::json::parse(output, nullptr, false);
  }
  int code;
  std::string output, errors;
  nlohmann::json json;
};

inline void WatchedJob::killRanks() {
  const Said live({"status", name, "--json"});
  if (!live.json.is_array()) return;
  // Stopped first: none may see another one's death.
  for (const int signal : {SIGSTOP, SIGKILL})
    for (const nlohmann::json& rank : live.json.at(0).at("ranks"))
      if (rank.at("alive").get<bool>()) ::kill(rank.at("pid").get<pid_t>(), signal);
}

}  // namespace falcon::tests
