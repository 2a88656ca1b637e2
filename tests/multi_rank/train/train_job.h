// Starts falcon-train as N processes, as torchrun would, and reads what it leaves.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "harness/reserved_port.h"

namespace falcon::train_test {

/// A folder that is removed at the end.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

/// One job; ends what still runs when destroyed. stderr of each rank goes to a file.
class TrainJob {
 public:
  /// `ranks` 0: one process without RANK in its environment.
  TrainJob(int ranks, std::vector<std::string> arguments, const Variables& variables = {});
  ~TrainJob();

  void kill(int rank) const;
  /// Exit codes in rank order; 128 + signal for a killed one; -1 for one that had to be ended at the limit.
  std::vector<int> wait(std::chrono::seconds limit = std::chrono::seconds(120));
  std::string errors(int rank) const;

 private:
  pid_t start(int rank, const std::vector<std::string>& arguments, const Variables& variables);

  ScratchFolder folder_;
  test::ReservedPort port_;  ///< where the ranks meet
  std::vector<pid_t> processes_;
};

struct LoggedIteration {
  std::uint64_t iteration = 0;
  double loss = 0;
  double start = 0;
  double end = 0;
  int microBatches = 0;
};
/// Who writes a log may still do so, or have been killed over it: its last line may then be a part of one, or none be
/// there yet.
enum class Growth { ended, grows };
/// The lines of a log; fails the test on one that is not whole.
std::vector<LoggedIteration> readLog(const std::string& path, Growth growth = Growth::ended);

}  // namespace falcon::train_test
