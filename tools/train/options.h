// The command line and the environment of one rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/layout.h"

namespace falcon::train {

/// This process's place in the job, as torchrun and `falcon run` set it.
struct RankInJob {
  int rank = 0;
  int size = 1;
  std::string masterAddress;
  std::string masterPort;
};

/// Before this iteration rank r takes role roles[r].
struct RolesAt {
  std::uint64_t iteration = 0;
  std::vector<int> roles;
};

struct Options {
  ModelShape shape;
  int dataParallel = 1;
  int pipelineParallel = 1;
  int tensorParallel = 1;
  int microBatches = 16;         ///< of one iteration, over all replicas
  std::uint64_t iterations = 0;  ///< 0: no limit
  double duration = 0;           ///< seconds; 0: no limit
  std::string until;             ///< a file; empty: none
  std::uint64_t seed = 1;
  double learningRate = 3e-3;
  std::string checkpoints;            ///< their folder; empty: none
  std::uint64_t checkpointEvery = 0;  ///< iterations; 0: only when it is wanted
  std::vector<RolesAt> roles;         ///< given by hand
  std::string log;                    ///< empty: none
  bool quiet = false;
  bool overlap = true;  ///< gradients are summed while others are computed
  RankInJob inJob;
};

/// Parsed options, or the exit code after --help (0) or a message about bad flags (2).
struct ParsedOptions {
  std::optional<Options> options;
  int exitCode = 0;
};
ParsedOptions parseOptions(int argc, char** argv);

}  // namespace falcon::train
