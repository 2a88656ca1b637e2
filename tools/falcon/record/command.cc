#include "record/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/owned.h"
#include "base/system_error.h"
#include "instrument/recording.h"
#include "jobs/job_files.h"
#include "json_text.h"
#include "number_rules.h"
#include "print.h"
#include "record/recorder.h"

namespace falcon::tools {
namespace {

struct RecordOptions {
  std::string file, job;
  double seconds = 0;
  bool json = false;
};

Status write(const std::string& path, const std::string& bytes) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return Error::system("{} cannot be written: {}", path, reasonOf(errno));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t now = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) return Error::system("{} cannot be written: {}", path, reasonOf(errno));
    done += static_cast<std::size_t>(now);
  }
  return {};
}

int record(const RecordOptions& options) {
  const auto job = jobs::chooseJob("record", options.job);
  if (!job) return toolFailed;
  std::vector<std::string> paths;
  for (const jobs::RankFile& rank : job->ranks) paths.push_back(rank.path);
  std::uint64_t missed = 0;
  const auto span = std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(options.seconds));
  const auto ranks = record::follow(paths, span, SystemClock::instance(), missed);
  const std::string recording = instrument::encodeRecording(ranks);
  if (const Status written = write(options.file, recording); !written) {
    print(stderr, "falcon record: {}\n", written.error().message());
    return toolFailed;
  }
  std::size_t calls = 0;
  for (const auto& rank : ranks) calls += rank.log.latest.size();
  if (options.json)
    fmt::print("{}\n", jsonText(nlohmann::json{{"job", job->name},
                                               {"file", options.file},
                                               {"ranks", ranks.size()},
                                               {"calls", calls},
                                               {"missed", missed},
                                               {"bytes", recording.size()}},
                                2));
  else
    print(stdout, "{}: {} calls of {} ranks of job {}{}\n", options.file, calls, ranks.size(), job->name,
          missed > 0 ? fmt::format(", {} more came too fast and were missed", missed) : "");
  return healthy;
}

}  // namespace

void addRecordCommand(CLI::App& app, int& exitCode) {
  auto options = std::make_shared<RecordOptions>();
  CLI::App* command =
      app.add_subcommand("record", "Copy the call logs of a job, live or crashed, into one file for `falcon trace`");
  command->add_option("file", options->file, "The file to write")->required();
  command->add_option("--job", options->job, "Name of the job; without: the newest that runs, or else the newest");
  command
      ->add_option("--seconds", options->seconds,
                   "Follow the job for so long and keep all calls of that time; without: what the logs hold now")
      ->check(numberFrom(0, 86400));
  command->add_flag("--json", options->json, "What was written, as JSON on stdout");
  command->callback([options, &exitCode] { exitCode = record(*options); });
}

}  // namespace falcon::tools
