#include "doctor/command.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "doctor/attach.h"
#include "doctor/own_ranks.h"
#include "doctor/rank_part.h"
#include "doctor/report.h"
#include "exec/loaded_library.h"
#include "number_rules.h"
#include "print.h"

namespace falcon::tools {
namespace {

struct CommandOptions {
  doctor::DoctorOptions doctor;
  int ranks = 0;
  int nodes = 0;
  bool json = false;
  std::string library;
  std::string handBack;
  std::string attach;
};

int endedBy(int signal) {
  print(stderr, "falcon doctor: ended by signal {}\n", signal);
  return 128 + signal;
}

int startRanks(const CommandOptions& options) {
  std::vector<std::string> words{"doctor", "--repeat", std::to_string(options.doctor.repeat)};
  if (options.json) words.emplace_back("--json");
  if (!options.doctor.neighbours.empty()) words.insert(words.end(), {"--neighbours", options.doctor.neighbours});
  const auto outcome = doctor::runOwnRanks(options.ranks, options.nodes, words);
  if (outcome.signal != 0) return endedBy(outcome.signal);
  printLines(stdout, outcome.text);
  return outcome.code;
}

int beRank(const CommandOptions& options) {
  Rank rank = 0;
  const auto measured = doctor::runDoctor(options.doctor, rank);
  if (!measured) {
    if (rank == 0) print(stderr, "falcon doctor: {}\n", measured.error().message());
    const int code = measured.error().code() == ErrorCode::invalidArgument ? badUsage : toolFailed;
    if (code != badUsage || options.handBack.empty()) return code;
    if (rank == 0) doctor::handBack(options.handBack, code, "");
    return healthy;
  }
  const auto findings = doctor::examine(*measured);
  const int code = findings.healthy() ? healthy : failSlowFound;
  const auto text = [&] {
    return options.json ? doctor::json(*measured, findings) : doctor::table(*measured, findings);
  };
  if (options.handBack.empty()) {
    if (rank == 0) printLines(stdout, text());
    return code;
  }
  if (rank == 0) doctor::handBack(options.handBack, code, text());
  return healthy;
}

int lookAtLibrary(const std::string& given) {
  // A name alone the loader would look for in its own folders, and find another one.
  std::error_code unknown;
  const std::string path = std::filesystem::absolute(given, unknown);
  const auto facts = factsOf(unknown ? given : path);
  if (!facts) {
    print(stdout, "{}\n", facts.error().message());
    return toolFailed;
  }
  print(stdout, "{}\n", describe(given, *facts));
  return healthy;
}

int examineRunningJob(const CommandOptions& options) {
  int signal = 0;
  const auto examination = doctor::examineJob(options.attach, signal);
  if (signal != 0) return endedBy(signal);
  if (!examination) return toolFailed;
  const auto measured = doctor::measurementsOf(*examination);
  auto findings = doctor::examine(measured);
  findings.notes.push_back(
      fmt::format("job {} was held for {:.2f} s for this", options.attach, examination->heldSeconds));
  printLines(stdout, options.json ? doctor::json(measured, findings) : doctor::table(measured, findings));
  return findings.healthy() ? healthy : failSlowFound;
}

}  // namespace

void addDoctorCommand(CLI::App& app, int& exitCode) {
  auto options = std::make_shared<CommandOptions>();
  auto* command = app.add_subcommand("doctor", "Tests processors, memory and links before a job, or of a running one");
  command->footer(
      "Ranks are started by -n on this machine, or by any launcher that sets RANK, WORLD_SIZE, MASTER_ADDR and\n"
      "MASTER_PORT: falcon run -n 8 -- falcon doctor\n"
      "Exit code 0 where nobody is slow, 3 where somebody is, 1 where the tests failed, 2 for wrong options.\n");
  command->add_option("-n,--ranks", options->ranks, "Start so many ranks here")
      ->check(wholeNumber())
      ->check(numberFrom(1, 4096));
  command->add_option("--nodes", options->nodes, "With -n: spread them over network namespaces (needs root)")
      ->check(wholeNumber())
      ->check(numberFrom(1, 4096));
  command
      ->add_option("--neighbours", options->doctor.neighbours,
                   "File that tells who is under one switch: a line of ranks, hosts or addresses for each")
      ->check(CLI::ExistingFile);
  command->add_option("--repeat", options->doctor.repeat, "Measure so often; tells how much each kind of test varies")
      ->check(wholeNumber())
      ->check(numberFrom(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--attach", options->attach,
                   "Instead, hold this running job for a moment and test its ranks and the links of its rings")
      ->check(notEmpty())
      ->excludes("--ranks")
      ->excludes("--nodes")
      ->excludes("--neighbours")
      ->excludes("--repeat");
  command->add_flag("--json", options->json, "One JSON object on stdout");
  command
      ->add_option("--library", options->library,
                   "Instead, say what this libnccl is, whether Falcon can serve it, and who would move the data")
      ->check(CLI::ExistingFile)
      ->excludes("--ranks")
      ->excludes("--nodes")
      ->excludes("--neighbours")
      ->excludes("--repeat")
      ->excludes("--attach")
      ->excludes("--json");
  command->add_option("--hand-back", options->handBack)->group("");
  command->callback([options, &exitCode] {
    if (options->nodes > 0 && options->ranks == 0)
      throw CLI::ValidationError("--nodes is for ranks started here: give -n too");
    if (!options->library.empty())
      exitCode = lookAtLibrary(options->library);
    else if (!options->attach.empty())
      exitCode = examineRunningJob(*options);
    else
      exitCode = options->ranks > 0 ? startRanks(*options) : beRank(*options);
  });
}

}  // namespace falcon::tools
