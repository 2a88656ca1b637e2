#include "support/command.h"

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <string>

#include "print.h"
#include "report/page.h"
#include "support/bundle.h"
#include "support/job_page.h"

namespace falcon::tools {
namespace {

struct ReportOptions {
  std::string job, output, bundle;
};

int fail(const std::string& what) {
  print(stderr, "falcon report: {}\n", what);
  return toolFailed;
}

int report(const ReportOptions& options) {
  std::vector<jobs::JobFiles> found = jobs::findJobs();
  if (!options.job.empty()) jobs::keepNamed(found, options.job);
  if (found.empty())
    return fail(options.job.empty() ? "no job of this user ran on this host with NCCL_FALCON=1"
                                    : fmt::format("no job named {}; `falcon status` lists them", options.job));
  const jobs::JobFiles& job = found.front();
  if (options.job.empty() && found.size() > 1)
    print(stderr, "falcon report: this is the newest of {} jobs, {}\n", found.size(), job.name);
  if (!options.bundle.empty()) {
    if (const auto written = support::writeBundle(options.bundle, job); !written)
      return fail(written.error().message());
    print(stderr, "falcon report: {} has all of job {}; names of hosts and the settings NCCL_* are in it, no secrets\n",
          options.bundle, job.name);
    if (options.output.empty()) return healthy;
  }
  const std::string path = options.output.empty() ? "falcon-report.html" : options.output;
  std::ofstream file(path);
  file << report_page::renderHtml(support::pageOf(job));
  if (!file.flush()) return fail(path + " cannot be written");
  print(stderr, "falcon report: job {} is in {}\n", job.name, path);
  return healthy;
}

}  // namespace

void addReportCommand(CLI::App& app, int& exitCode) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command =
      app.add_subcommand("report", "A job as one HTML page, or all that is known of it in one file for a support case");
  command->add_option("job", options->job, "Name of a job, live or ended; the newest without");
  command->add_option("-o,--output", options->output, "The page; falcon-report.html unless said");
  command->add_option("--bundle", options->bundle,
                      "A .tar.gz with the page, events, call logs, status, versions and the ranks' NCCL_* settings, "
                      "without secrets");
  command->callback([options, &exitCode] { exitCode = report(*options); });
}

}  // namespace falcon::tools
