#include "doctor/own_ranks.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "run/launcher.h"
#include "subcommand.h"
#include "work_folder.h"

namespace falcon::doctor {
namespace fs = std::filesystem;

RanksOutcome runOwnRanks(int ranks, int nodes, std::vector<std::string> words) {
  const tools::WorkFolder folder("doctor");
  tools::RunOptions run;
  run.ranks = ranks;
  run.nodes = nodes;
  run.quietWhenAsked = true;
  run.program = {fs::read_symlink("/proc/self/exe").string()};
  run.program.insert(run.program.end(), words.begin(), words.end());
  run.program.insert(run.program.end(), {"--hand-back", folder.path()});
  if (const auto reason = tools::whyNot(run)) throw CLI::ValidationError(*reason);
  // Of a job around this one, whose ranks would not know of ours.
  for (const char* name : {"NCCL_COMM_ID", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) unsetenv(name);
  setenv("NCCL_FALCON", "0", 1);  // there is nothing to watch
  RanksOutcome outcome;
  outcome.code = tools::launch(run, &outcome.signal);
  if (outcome.code != 0) return outcome;
  std::ifstream file(folder.path() + "/answer");
  if (!(file >> outcome.code) || file.get() != '\n') return {tools::toolFailed, "", outcome.signal};
  outcome.text.assign(std::istreambuf_iterator<char>(file), {});
  return outcome;
}

void handBack(const std::string& folder, int code, const std::string& text) {
  std::ofstream file(folder + "/answer");
  file << code << '\n' << text;
  if (!file.flush()) throw std::runtime_error(folder + "/answer cannot be written");
}

}  // namespace falcon::doctor
