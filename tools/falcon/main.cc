// The `falcon` command: a table of subcommands. Results go to stdout, everything else to stderr.
#include <fmt/core.h>

#include "demo/command.h"
#include "inject/command.h"
#include "jobs/command.h"
#include "perf/command.h"
#include "run/command.h"
#include "subcommand.h"
#include "tune/command.h"

namespace {

constexpr falcon::tools::AddCommand commands[] = {
    falcon::tools::addRunCommand,        falcon::tools::addInjectCommand, falcon::tools::addPerfCommand,
    falcon::tools::addStatusCommand,     falcon::tools::addOffCommand,    falcon::tools::addDemoCommand,
    falcon::tools::addParametersCommand, falcon::tools::addTuneCommand,
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("NCCL Falcon: notices when a distributed job runs slow, finds the slow rank or link, works around it.");
  app.require_subcommand(1);
  int exitCode = falcon::tools::healthy;
  for (const auto add : commands) add(app, exitCode);
  try {
    const auto words = falcon::tools::withProgramMarked(argc, argv);
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    app.exit(error);  // prints what was wrong, and the way to the help
    return falcon::tools::badUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "falcon: {}\n", error.what());
    return falcon::tools::toolFailed;
  }
  return exitCode;
}
