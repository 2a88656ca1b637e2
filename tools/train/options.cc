#include "train/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "falcon/number_rules.h"

namespace falcon::train {

namespace {

constexpr int badFlags = 2;
constexpr double mostSeconds = 365 * 86'400.0;

int environmentNumber(const char* name, int least) {
  const char* text = std::getenv(name);
  if (text == nullptr) throw std::invalid_argument(std::string("RANK is set, but ") + name + " is not");
  int value = 0;
  const char* end = text + std::char_traits<char>::length(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < least)
    throw std::invalid_argument(std::string(name) + "=" + text + " is not a number of " + std::to_string(least) +
                                " or more");
  return value;
}

std::string environmentText(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0')
    throw std::invalid_argument(std::string("more than one rank needs ") + name + " in the environment");
  return text;
}

RankInJob rankInJobFromEnvironment() {
  RankInJob inJob;
  if (std::getenv("RANK") == nullptr) return inJob;
  inJob.rank = environmentNumber("RANK", 0);
  inJob.size = environmentNumber("WORLD_SIZE", 1);
  if (inJob.rank >= inJob.size)
    throw std::invalid_argument("RANK=" + std::to_string(inJob.rank) +
                                " is not below WORLD_SIZE=" + std::to_string(inJob.size));
  if (inJob.size > 1) {
    inJob.masterAddress = environmentText("MASTER_ADDR");
    inJob.masterPort = environmentText("MASTER_PORT");
  }
  return inJob;
}

void require(bool holds, const std::string& message) {
  if (!holds) throw std::invalid_argument(message);
}

/// "10:1,0,2,3" is: before iteration 10 rank 0 takes role 1, rank 1 role 0.
RolesAt rolesFrom(const std::string& text) {
  const auto refuse = [&] {
    throw std::invalid_argument("--roles " + text + " is not ITERATION:ROLE,ROLE,... with a role for each rank");
  };
  RolesAt change;
  const char* at = text.c_str();
  const char* const end = at + text.size();
  const auto number = [&](auto& value) {
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc()) refuse();
    at = stop;
  };
  number(change.iteration);
  for (char before = ':'; at != end || before == ':'; before = ',') {
    if (at == end || *at++ != before) refuse();
    number(change.roles.emplace_back());
  }
  return change;
}

void check(const Options& options) {
  const auto text = [](long long value) { return std::to_string(value); };
  const ModelShape& shape = options.shape;
  const long long ranks = 1LL * options.dataParallel * options.pipelineParallel * options.tensorParallel;
  require(ranks == options.inJob.size, "--dp " + text(options.dataParallel) + " x --pp " +
                                           text(options.pipelineParallel) + " x --tp " + text(options.tensorParallel) +
                                           " makes " + text(ranks) + " ranks, but WORLD_SIZE is " +
                                           text(options.inJob.size));
  require(shape.hidden % shape.heads == 0,
          "--hidden " + text(shape.hidden) + " is not a multiple of --heads " + text(shape.heads));
  require(shape.heads % options.tensorParallel == 0,
          "--heads " + text(shape.heads) + " is not a multiple of --tp " + text(options.tensorParallel));
  require(shape.layers >= options.pipelineParallel, "--layers " + text(shape.layers) + " is less than --pp " +
                                                        text(options.pipelineParallel) + ": every stage needs one");
  require(options.microBatches >= options.dataParallel, "--micro-batches " + text(options.microBatches) +
                                                            " is less than --dp " + text(options.dataParallel) +
                                                            ": every replica needs one");
  for (const RolesAt& change : options.roles)
    require(static_cast<int>(change.roles.size()) == options.inJob.size,
            "--roles names " + text(static_cast<long long>(change.roles.size())) + " roles for " +
                text(options.inJob.size) + " ranks");
}

}  // namespace

ParsedOptions parseOptions(int argc, char** argv) {
  Options options;
  std::uint64_t iterations = 100;
  CLI::App app{
      "Trains a small GPT on synthetic data with data, pipeline and tensor parallelism over NCCL, on host memory.\n"
      "Start one process per rank, e.g.: falcon run -n 8 -- falcon-train --dp 4 --pp 2\n"
      "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT come from the environment; without RANK it is one rank.",
      "falcon-train"};
  app.option_defaults()->always_capture_default();
  // Large enough for any use, small enough that products of two fit an int.
  const auto count = CLI::Range(1, 1 << 14);
  app.add_option("--dp", options.dataParallel, "Data-parallel replicas")->check(count);
  app.add_option("--pp", options.pipelineParallel, "Pipeline stages")->check(count);
  app.add_option("--tp", options.tensorParallel, "Tensor-parallel ranks in a stage")->check(count);
  app.add_option("--micro-batches", options.microBatches, "Micro-batches of one iteration, over all replicas")
      ->check(count);
  app.add_option("--micro-batch-size", options.shape.microBatchSize, "Sequences in a micro-batch")->check(count);
  app.add_option("--layers", options.shape.layers, "Transformer blocks")->check(count);
  app.add_option("--hidden", options.shape.hidden, "Width of the residual stream")->check(count);
  app.add_option("--heads", options.shape.heads, "Attention heads")->check(count);
  app.add_option("--sequence", options.shape.sequence, "Tokens in a sequence")->check(count);
  app.add_option("--vocab", options.shape.vocabulary, "Different tokens")->check(CLI::Range(2, 1 << 14));
  auto* iterationsOption =
      app.add_option("--iterations", iterations, "Iterations to train; no limit if only --duration or --until is given")
          ->check(tools::wholeNumber())
          ->check(tools::numberFrom(1, 1e18));
  auto* durationOption =
      app.add_option("--duration", options.duration, "Stop after this many seconds, all ranks at the same iteration")
          ->check(tools::numberFrom(0, mostSeconds));
  auto* untilOption = app.add_option("--until", options.until,
                                     "Stop when this file is there for rank 0, all ranks at the same iteration");
  app.add_option("--seed", options.seed, "Seed of weights and data")->check(tools::wholeNumber());
  app.add_option("--learning-rate", options.learningRate, "Adam's learning rate")->check(tools::numberAbove(0, 1000));
  auto* checkpointsOption = app.add_option(
      "--checkpoints", options.checkpoints,
      "Folder of checkpoints: training goes on from the newest one there, and restarts where Falcon wants it");
  app.add_option("--checkpoint-every", options.checkpointEvery,
                 "Iterations between checkpoints; 0: only when Falcon wants one")
      ->check(tools::wholeNumber())
      ->needs(checkpointsOption);
  std::vector<std::string> roles;
  app.add_option("--roles", roles,
                 "ITERATION:ROLE,ROLE,...: before this iteration rank r takes the role of the r-th number, with its "
                 "state and its groups; several times for several changes")
      ->type_name("ITERATION:ROLES")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--log", options.log,
                 "One JSON line per iteration, from rank 0; from every rank if the name has %r, its rank");
  app.add_flag("--no-overlap{false},--overlap{true}", options.overlap,
               "Sum the gradients after the backward pass, not beside it on a host stream");
  app.add_flag("--quiet", options.quiet, "No line per iteration on standard output");
  try {
    app.parse(argc, argv);
    options.inJob = rankInJobFromEnvironment();
    for (const std::string& each : roles) options.roles.push_back(rolesFrom(each));
    check(options);
  } catch (const CLI::Success& request) {
    return {std::nullopt, app.exit(request)};
  } catch (const CLI::Error& error) {
    std::fprintf(stderr, "falcon-train: %s\n", error.what());
    return {std::nullopt, badFlags};
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "falcon-train: %s\n", error.what());
    return {std::nullopt, badFlags};
  }
  const bool limited = (durationOption->count() == 0 && untilOption->count() == 0) || iterationsOption->count() > 0;
  options.iterations = limited ? iterations : 0;
  return {options, 0};
}

}  // namespace falcon::train
