#include "perf/command.h"

#include <fmt/format.h>

#include <memory>
#include <stdexcept>

#include "perf/perf_options.h"

namespace falcon::tools {

void addPerfCommand(CLI::App& app, int& exitCode) {
  auto options = std::make_shared<perf::PerfOptions>();
  CLI::App* command = app.add_subcommand(
      "perf", "Measure a collective, as nccl-tests does; ranks by `falcon run -n N -- falcon perf ...` or -t");
  command
      ->add_option("collective", options->collective,
                   "all_reduce, all_gather, reduce_scatter, broadcast, reduce, alltoall, gather, scatter or sendrecv")
      ->capture_default_str();
  command->add_option("-b,--minbytes", options->minBytes, "Smallest size")->capture_default_str();
  command->add_option("-e,--maxbytes", options->maxBytes, "Largest size")->capture_default_str();
  command->add_option("-i,--stepbytes", options->stepBytes, "Step between sizes where no factor is given (1M)");
  command->add_option("-f,--stepfactor", options->stepFactor, "Factor between sizes");
  command->add_option("-n,--iters", options->iterations, "Iterations that are timed")->capture_default_str();
  command->add_option("-w,--warmup_iters", options->warmup, "Iterations before")->capture_default_str();
  command->add_option("-c,--check", options->check, "Check the results: 1, or 0")->capture_default_str();
  command->add_option("-d,--datatype", options->type, "int8 ... bfloat16, or all")->capture_default_str();
  command->add_option("-o,--op", options->op, "sum, prod, max, min, avg, or all")->capture_default_str();
  command->add_option("-r,--root", options->root, "Root rank")->capture_default_str();
  command->add_option("-t,--nthreads", options->threads, "Ranks as threads of this process, without a launcher");
  command->add_option("-J,--output_file", options->json, "Write the results as JSON into this file");
  command->callback([options, &exitCode] {
    try {
      exitCode = perf::runPerf(perf::makePlan(*options));
    } catch (const std::invalid_argument& error) {
      fmt::print(stderr, "falcon perf: {}\n", error.what());
      exitCode = badUsage;
    }
  });
}

}  // namespace falcon::tools
