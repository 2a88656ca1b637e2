// What was asked of `falcon run`.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace falcon::tools {

enum class Bind { automatic, core, none };
enum class UseCgroups { no, must, ifPossible };

struct RunOptions {
  int ranks = 1;
  int nodes = 0;  ///< network namespaces; 0: none
  Bind bind = Bind::automatic;
  UseCgroups cgroups = UseCgroups::no;
  int restarts = 0;                  ///< how often a job that failed is started again
  int spares = 0;                    ///< places beyond the ranks', for whom a restart leaves out
  std::string describe;              ///< file for the job's description; empty: none
  std::vector<std::string> program;  ///< with its arguments; not empty
  /// How ranks end after a signal that asked this process to end is not said: the caller says the same of itself.
  bool quietWhenAsked = false;
};

/// Why these options cannot be, with the value and the remedy; nothing where they can.
std::optional<std::string> whyNot(const RunOptions& options);

}  // namespace falcon::tools
