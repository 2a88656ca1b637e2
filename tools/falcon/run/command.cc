#include "run/command.h"

#include <map>
#include <memory>
#include <string>

#include "base/format.h"
#include "run/launcher.h"
#include "run/program_words.h"

namespace falcon::tools {
namespace {

const std::map<std::string, Bind> bindWords{{"auto", Bind::automatic}, {"core", Bind::core}, {"none", Bind::none}};
const std::map<std::string, UseCgroups> cgroupWords{
    {"no", UseCgroups::no}, {"must", UseCgroups::must}, {"try", UseCgroups::ifPossible}};

// As the options are written, before they mean anything.
struct Words {
  std::string bind = "auto";
  std::string cgroups = "no";
};

}  // namespace

void addRunCommand(CLI::App& app, int& exitCode) {
  auto* command = app.add_subcommand("run", "Runs a program as the ranks of a job on this machine");
  auto options = std::make_shared<RunOptions>();
  auto words = std::make_shared<Words>();

  command->footer(
      "Example: falcon run -n 4 --bind core -- ./train --steps 10\n"
      "Returns the job's own exit code: 0, or that of the first rank that failed (128 + signal).");
  command->prefix_command();
  command->add_option("-n,--ranks", options->ranks, "Number of ranks")->required();
  auto* nodes = command->add_option("--nodes", options->nodes,
                                    "Spreads the ranks over so many nodes (network namespaces; needs root)");
  command
      ->add_option("--bind", words->bind,
                   "auto: share the cores out if there are no more ranks than cores; core: one each")
      ->check(CLI::IsMember({"auto", "core", "none"}))
      ->capture_default_str();
  command
      ->add_flag("--cgroups{must}", words->cgroups,
                 "Every rank in a cpu cgroup of its own; --cgroups=try goes on without if need be")
      ->check(CLI::IsMember({"must", "try", "no"}));
  command->add_option("--restarts", options->restarts,
                      "Starts a job that failed again, so many times at most: one that asked for it (docs/restart.md) "
                      "as well as one that died by itself");
  command->add_option("--spares", options->spares,
                      "Places (a cgroup, a node) beyond the ranks', for those that a restart leaves out");
  command->add_option("--describe", options->describe,
                      "File to write the job's description to once all ranks have started");

  command->callback([command, nodes, options, words, &exitCode] {
    options->program = programOf("run", command->remaining());
    options->bind = bindWords.at(words->bind);
    options->cgroups = cgroupWords.at(words->cgroups);
    if (nodes->count() > 0 && options->nodes == 0)
      throw CLI::ValidationError("--nodes 0: every job has a node; use 1 to the value of -n, or leave it out");
    if (const auto reason = whyNot(*options)) throw CLI::ValidationError(*reason);
    exitCode = launch(*options);
  });
}

}  // namespace falcon::tools
