#include "trace/command.h"

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "jobs/hang_command.h"
#include "jobs/job_files.h"
#include "jobs/recording_files.h"
#include "json_text.h"
#include "print.h"
#include "trace/chrome_trace.h"

namespace falcon::tools {
namespace {

struct TraceOptions {
  std::vector<std::string> files;
  std::string job, output;
};

int trace(const TraceOptions& options) {
  std::vector<instrument::RankSnapshot> ranks;
  if (!options.files.empty()) {
    auto recorded = jobs::readRecordings(options.files);
    if (!recorded) {
      print(stderr, "falcon trace: {}\n", recorded.error().message());
      return toolFailed;
    }
    ranks = std::move(*recorded);
  }
  if (options.files.empty()) {
    const auto job = jobs::chooseJob("trace", options.job);
    if (!job) return toolFailed;
    ranks = jobs::snapshotsOf(*job, SIZE_MAX);
  }
  const std::string text = jsonText(trace::chromeTrace(ranks));
  if (options.output.empty()) {
    fmt::print("{}\n", text);
    return healthy;
  }
  std::ofstream file(options.output, std::ios::binary);
  file << text << '\n';
  file.close();
  if (file) return healthy;
  print(stderr, "falcon trace: {} cannot be written\n", options.output);
  return toolFailed;
}

}  // namespace

void addTraceCommand(CLI::App& app, int& exitCode) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* command = app.add_subcommand(
      "trace", "What each rank called and when, as Chrome trace JSON for ui.perfetto.dev; of recordings or of a job");
  CLI::Option* files =
      command->add_option("file", options->files, "Recordings of `falcon record`, one of each host; without: of a job");
  command->add_option("--job", options->job, "Name of the job; without: the newest that runs, or else the newest")
      ->excludes(files);
  command->add_option("-o,--output", options->output, "The file to write; without: stdout");
  command->callback([options, &exitCode] { exitCode = trace(*options); });
}

}  // namespace falcon::tools
