// The `falcon` command: a table of subcommands. Results go to stdout, everything else to stderr.
#include <fmt/core.h>

#include <cstdio>

#include "demo/command.h"
#include "doctor/command.h"
#include "exec/command.h"
#include "inject/command.h"
#include "injections/command.h"
#include "jobs/command.h"
#include "metrics/command.h"
#include "perf/command.h"
#include "plan/command.h"
#include "print.h"
#include "record/command.h"
#include "replay/command.h"
#include "run/command.h"
#include "run/program_words.h"
#include "sim/command.h"
#include "subcommand.h"
#include "support/command.h"
#include "top/command.h"
#include "trace/command.h"
#include "tune/command.h"
#include "watch/command.h"

namespace {

constexpr falcon::tools::AddCommand commands[] = {
    falcon::tools::addExecCommand,   falcon::tools::addRunCommand,        falcon::tools::addInjectCommand,
    falcon::tools::addPerfCommand,   falcon::tools::addStatusCommand,     falcon::tools::addOffCommand,
    falcon::tools::addRecordCommand, falcon::tools::addTraceCommand,      falcon::tools::addTopCommand,
    falcon::tools::addDemoCommand,   falcon::tools::addParametersCommand, falcon::tools::addTuneCommand,
    falcon::tools::addReplayCommand, falcon::tools::addSimCommand,        falcon::tools::addDoctorCommand,
    falcon::tools::addProbeCommand,  falcon::tools::addWatchCommand,      falcon::tools::addMetricsCommand,
    falcon::tools::addReportCommand, falcon::tools::addInjectionsCommand, falcon::tools::addSuspendCommand,
    falcon::tools::addResumeCommand, falcon::tools::addPlanCommand,
};

/// What is wrong with the words, and what would be right.
std::string explain(const CLI::App& app, const CLI::Error& error) {
  if (const auto chosen = app.get_subcommands(); !chosen.empty()) {
    const std::string& name = chosen[0]->get_name();
    return fmt::format("falcon {}: {}\nfalcon {} --help shows its options.\n", name, error.what(), name);
  }
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names += (names.empty() ? "" : ", ") + command->get_name();
  const auto words = app.remaining();
  const std::string wrong = words.empty() ? "it takes a command" : fmt::format("there is no command '{}'", words[0]);
  return fmt::format("falcon: {}; the commands are {}\nfalcon --help says what they do.\n", wrong, names);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("NCCL Falcon: notices when a distributed job runs slow, finds the slow rank or link, works around it.");
  app.require_subcommand(1);
  app.set_version_flag("--version", "falcon " FALCON_VERSION);
  app.failure_message([](const CLI::App* program, const CLI::Error& error) { return explain(*program, error); });
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
    falcon::tools::print(stderr, "falcon: {}\n", error.what());
    return falcon::tools::toolFailed;
  }
  // A part of what was to be printed must not pass for all of it.
  if (exitCode == falcon::tools::healthy && (std::fflush(stdout) != 0 || std::ferror(stdout))) {
    fmt::print(stderr, "falcon: standard output cannot be written to (is the disk full?)\n");
    return falcon::tools::toolFailed;
  }
  return exitCode;
}
