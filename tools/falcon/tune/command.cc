#include "tune/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

#include "number_rules.h"
#include "run/launcher.h"
#include "tune/rank_part.h"
#include "work_folder.h"

namespace falcon::tools {
namespace {

namespace fs = std::filesystem;
using collectives::Extent;

struct TuneOptions {
  std::string output = "falcon-tuning.txt";
  std::vector<int> ranks{2, 4, 8};
  int mostMebibytes = 64;
  double milliseconds = 10;
  bool network = false;
  std::string measure;  ///< set in the ranks: the folder to work in
};

/// Runs one job that measures. Its environment is this process's.
void measure(const TuneOptions& options, Extent extent, int ranks, const std::string& folder) {
  fmt::print(stderr, "falcon tune: {} ranks, {}\n", ranks, extent == Extent::node ? "shared memory" : "sockets");
  setenv("NCCL_SHM_DISABLE", extent == Extent::node ? "0" : "1", 1);
  RunOptions run;
  run.ranks = ranks;
  run.program = {fs::read_symlink("/proc/self/exe").string(),
                 "tune",
                 "--measure",
                 folder,
                 "--max-mib",
                 std::to_string(options.mostMebibytes),
                 "--milliseconds",
                 fmt::format("{}", options.milliseconds)};
  if (extent == Extent::network) run.program.emplace_back("--network");
  if (launch(run) != 0) throw std::runtime_error(fmt::format("the job of {} ranks failed; nothing was written", ranks));
}

void write(const TuneOptions& options, const std::vector<collectives::TuningLine>& lines) {
  std::string text =
      "# Written by falcon tune; NCCL_FALCON_TUNING_FILE names this file. The last line that applies counts.\n"
      "# operation   extent  ranks     from    below  algorithm\n";
  for (const auto& line : lines) text += format(line) + '\n';
  for (const Extent extent : {Extent::node, Extent::network})
    if (const auto read = collectives::parseTuning(text, extent); !read)
      throw std::runtime_error("the library would not read its own file: " + read.error().message());
  std::ofstream file(options.output);
  if (!(file << text) || !file.flush())
    throw std::runtime_error(fmt::format("{} cannot be written; name another file with -o", options.output));
  fmt::print(stderr, "falcon tune: wrote {}; to use it, set NCCL_FALCON_TUNING_FILE={}\n", options.output,
             fs::absolute(options.output).string());
}

/// Before minutes of measuring. What is there stays until the new lines are.
void requireWritable(const std::string& path) {
  const bool known = fs::exists(path);
  if (!std::ofstream(path, std::ios::app))
    throw std::runtime_error(fmt::format("{} cannot be written; name another file with -o", path));
  if (!known) fs::remove(path);
}

int tune(const TuneOptions& options) {
  requireWritable(options.output);
  const WorkFolder folder("tune");
  // What would change the choice, or watch the job.
  for (const char* name : {"NCCL_FALCON_TUNING_FILE", "NCCL_ALGO", "NCCL_PROTO", "NCCL_FALCON_CHECK"}) unsetenv(name);
  setenv("NCCL_FALCON", "0", 1);
  for (const Extent extent : {Extent::node, Extent::network})
    for (const int ranks : options.ranks) measure(options, extent, ranks, folder.path());
  write(options, tune::bestLines(tune::readSamples(folder.path())));
  return healthy;
}

int beRank(const TuneOptions& options) {
  tune::runRankPart({options.network ? Extent::network : Extent::node,
                     static_cast<std::size_t>(options.mostMebibytes) << 20, options.milliseconds / 1000,
                     options.measure});
  return healthy;
}

}  // namespace

void addTuneCommand(CLI::App& app, int& exitCode) {
  auto options = std::make_shared<TuneOptions>();
  CLI::App* command = app.add_subcommand(
      "tune", "Measure the algorithms on this machine and write a file for NCCL_FALCON_TUNING_FILE (a few minutes)");
  command->add_option("-o,--output", options->output, "The file to write")->capture_default_str();
  command->add_option("-n,--ranks", options->ranks, "Numbers of ranks to measure, such as 2,4,8")
      ->delimiter(',')
      ->check(wholeNumber())
      ->check(numberFrom(2, 1024))
      ->capture_default_str();
  command->add_option("--max-mib", options->mostMebibytes, "Largest size, MiB")
      ->check(wholeNumber())
      ->check(numberFrom(1, 1024))
      ->capture_default_str();
  command->add_option("--milliseconds", options->milliseconds, "Length of each measurement")
      ->check(numberFrom(0.1, 10000))
      ->capture_default_str();
  command->add_option("--measure", options->measure)->group("");
  command->add_flag("--network", options->network)->group("");
  command->callback([options, &exitCode] {
    std::sort(options->ranks.begin(), options->ranks.end());
    exitCode = options->measure.empty() ? tune(*options) : beRank(*options);
  });
}

}  // namespace falcon::tools
