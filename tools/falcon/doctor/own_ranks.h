// A subcommand that starts its own ranks: this program again, as the ranks of a job, whose rank 0 hands back a text.
#pragma once

#include <string>
#include <vector>

namespace falcon::doctor {

struct RanksOutcome {
  int code = 0;      ///< what the subcommand shall return; `falcon run`'s where the job failed
  std::string text;  ///< from rank 0; empty where the job failed
  int signal = 0;    ///< that asked this process to end meanwhile; 0: none
};

/// Runs `falcon words... --hand-back FOLDER` on `ranks` ranks. Throws CLI::ValidationError where that cannot be.
RanksOutcome runOwnRanks(int ranks, int nodes, std::vector<std::string> words);

/// Rank 0's part of it: leaves code and text in the folder.
void handBack(const std::string& folder, int code, const std::string& text);

}  // namespace falcon::doctor
