#include "injections/sweep.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>

#include "base/format.h"
#include "base/median.h"
#include "inject/outcome.h"
#include "injections/episode.h"
#include "injections/recovery.h"
#include "injections/shaped_links.h"
#include "injections/victim.h"
#include "json_text.h"
#include "machine/description.h"

namespace falcon::injections {
namespace {

constexpr double sweptBitsPerSecond = 200e6;
constexpr double forLinks = 30;    ///< s
constexpr double forFitting = 12;  ///< s of iterations, of which a median is taken
constexpr double undisturbed = 20, afterRelief = 5;
constexpr double forHealthy = 12, forRemedy = 60, withRemedy = 15, forUndoing = 60;  ///< s, where the job helps itself
constexpr double calm = 25;  ///< s after the baseline: what is healthy is known by more than that
constexpr double longestHold = 3;

using tools::orNull;

using Surroundings = std::function<demo::JobSurroundings(const std::string& name)>;
using Hear = std::function<void(const demo::Said&)>;

/// A job that starts when its links are shaped.
class ShapedJob {
 public:
  ShapedJob(demo::JobSurroundings surroundings, int microBatches, const Hear& hear) {
    surroundings.shape.microBatches = microBatches;
    // Nothing is to hide the exchange: the last stage sums its gradients while the one before it computes its last
    // micro-batch.
    surroundings.shape.sequences = 1;
    surroundings.shape.overlap = false;
    surroundings.startFile = surroundings.folder + "/start";
    job_.emplace(surroundings, hear);
    std::optional<tools::JobDescription> description;
    const auto isDescribed = [&] {
      auto read = tools::readDescription(job_->file("job.json"));
      if (read) description = std::move(*read);
      return description.has_value();
    };
    if (!job_->lookUntil(isDescribed, forLinks)) throw std::runtime_error("the job did not describe itself in time");
    links_.emplace(*description, surroundings.shape, sweptBitsPerSecond);
    std::ofstream(surroundings.startFile).close();
    job_->waitForBaseline(forBaseline);
    job_->wait(calm);
  }
  SlowJob& job() { return *job_; }
  ShapedLinks& links() { return *links_; }

 private:
  std::optional<SlowJob> job_;
  std::optional<ShapedLinks> links_;
};

/// How long one micro-batch of every replica, of one sequence, takes here, and the exchange of all gradients at the
/// shaped rate.
struct Costs {
  double microBatch = 0, exchange = 0;  ///< seconds an iteration

  /// Of all replicas together, so that the exchange takes this share of an iteration.
  int microBatchesFor(double share, int replicas) const {
    const double each = exchange * (1 / share - 1) / microBatch;
    return replicas * std::max(1, static_cast<int>(std::lround(each)));
  }
};

Costs measureCosts(const Surroundings& surroundings, const Hear& hear) {
  constexpr int each = 8;
  const demo::JobSurroundings ours = surroundings("fit");
  ShapedJob shaped(ours, each * ours.shape.dataParallel, hear);
  const Link link{0, neighboursOf(0, ours.shape).to};
  const double before = shaped.links().bytes(link);
  shaped.job().takeIterationEnds();
  shaped.job().wait(forFitting);
  const std::vector<double> ends = shaped.job().takeIterationEnds();
  const double bytes = shaped.links().bytes(link) - before;
  if (ends.size() < 4) throw std::runtime_error(fmt::format("{} iterations in {} s: too few", ends.size(), forFitting));
  const double iteration = (ends.back() - ends.front()) / static_cast<double>(ends.size() - 1);
  const double exchange = bytes / (forFitting / iteration) / shaped.links().bytesPerSecond();
  const Costs costs{(iteration - exchange) / each, exchange};
  fmt::print(stderr, "fitted: an exchange of gradients takes {:.0f} ms at {:.0f} Mbit/s, a micro-batch {:.0f} ms\n",
             1e3 * costs.exchange, sweptBitsPerSecond / 1e6, 1e3 * costs.microBatch);
  if (costs.microBatch <= 0 || costs.exchange <= 0)
    throw std::runtime_error(
        fmt::format("iterations of {:.0f} ms cannot hold an exchange of {:.0f} ms", 1e3 * iteration, 1e3 * exchange));
  return costs;
}

/// Slows the victims until its end.
class Slowness {
 public:
  Slowness(const Cell& cell, const std::vector<Culprit>& victims, ShapedJob& shaped, std::size_t number)
      : shaped_(shaped) {
    for (const Culprit& culprit : victims) {
      if (culprit.kind == CulpritKind::link) slow(culprit, cell.factor);
      if (culprit.kind == CulpritKind::rank) slow(culprit.rank, cell.factor, number);
      if (culprit.kind == CulpritKind::host) takeCores();
    }
  }
  ~Slowness() {
    for (const Link& link : links_) shaped_.links().slow(link, 1);
  }
  Slowness(const Slowness&) = delete;

 private:
  void slow(const Culprit& culprit, double factor) {
    links_.push_back(culprit.link);
    if (culprit.bothWays) links_.push_back({culprit.link.to, culprit.link.from});
    for (const Link& link : links_) shaped_.links().slow(link, factor);
  }
  void slow(Rank rank, double factor, std::size_t number) {
    demo::Injection injection;
    injection.culprit = {.kind = CulpritKind::rank, .rank = rank};
    injection.factor = factor;
    rank_.emplace(shaped_.job(), injection, number);
    const auto settled = [&] { return rank_->isSlowed() || rank_->ended(); };
    if (!shaped_.job().lookUntil(settled, forEffect) || rank_->ended())
      throw std::runtime_error("the rank could not be slowed: " + rank_->errors());
  }
  void takeCores() {
    const std::string output = shaped_.job().file("others");
    for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i)
      others_.emplace_back(std::vector<std::string>{"/bin/sh", "-c", "while :; do :; done"},
                           std::map<std::string, std::string>{}, output, output);
  }

  ShapedJob& shaped_;
  std::vector<Link> links_;
  std::optional<Victim> rank_;
  std::vector<demo::ChildProcess> others_;
};

double iterationMilliseconds(const std::vector<double>& ends, double from, double to) {
  return 1e3 * median(iterationsBetween(ends, from, to), 0);
}

auto timesSaid(SlowJob& job, std::string_view kind, double since = 0) {
  return std::count_if(job.said().begin(), job.said().end(),
                       [&](const demo::Said& each) { return each.kind == kind && each.time >= since; });
}

/// Until what was found is worked around, and that for a while; or it is not.
void waitForRemedy(SlowJob& job, double since) {
  if (job.lookUntil([&] { return timesSaid(job, "mitigation-applied", since) > 0; }, forRemedy)) job.wait(withRemedy);
}

/// All remedies of the job are undone.
void waitForUndoing(SlowJob& job) {
  job.lookUntil([&] { return timesSaid(job, "mitigation-undone") >= timesSaid(job, "mitigation-applied"); },
                forUndoing);
}

struct Injected {
  Row row;
  std::optional<double> recovered;
};

Injected injectCell(const Cell& cell, const Victims& victims, ShapedJob& shaped, std::size_t number) {
  SlowJob& job = shaped.job();
  const bool mitigates = job.surroundings().mitigate;
  job.takeSaid();
  job.takeIterationEnds();
  if (mitigates) job.wait(forHealthy);
  Episode episode;
  episode.truth = victims.needed;
  episode.started = tools::monotonicNow();
  if (victims.slow.empty()) {
    job.wait(undisturbed);
  } else {
    const Slowness slowness(cell, victims.slow, shaped, number);
    episode.effective = tools::monotonicNow();
    if (job.lookUntil([&] { return allNamed(victims.needed, job.said()); }, forVerdict)) job.wait(afterVerdict);
    if (mitigates && boundOf(cell, job.surroundings().shape)) waitForRemedy(job, episode.effective);
  }
  episode.relieved = tools::monotonicNow();
  job.lookUntil([&] { return allRelieved(job.said(), episode.relieved); }, forRelief);
  if (mitigates) waitForUndoing(job);
  job.wait(afterRelief);
  episode.said = job.takeSaid();
  episode.iterationEnds = job.takeIterationEnds();
  fmt::print(stderr, "{:<15} {:<4} iterations of {:.0f} ms, {:.0f} ms after it\n", nameOf(cell.kind), cell.factor,
             iterationMilliseconds(episode.iterationEnds, episode.effective, episode.relieved),
             iterationMilliseconds(episode.iterationEnds, episode.relieved, tools::monotonicNow()));
  Row row = scoreOf(episode);
  episode.truth = victims.slow;
  row.innocent = scoreOf(episode).innocent;
  // Of an interface more may be named than has to be.
  row.right = row.innocent == 0 && row.reliefSeen == !victims.needed.empty() &&
              row.validationSeconds.has_value() == !victims.needed.empty();
  return {row, mitigates ? recoveredIn(episode, forHealthy) : std::nullopt};
}

std::string thisHost() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

/// Of what the bound allows. An interface counts in the mean only.
double wantedShareOf(CellKind kind) {
  if (kind == CellKind::link || kind == CellKind::linkBothWays) return 0.9;
  return kind == CellKind::rank ? 0.8 : 0;
}
constexpr double wantedMean = 0.8;

std::optional<double> medianOf(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(median(values));
}

CellResult runCell(const Cell& cell, int count, ShapedJob& shaped, std::size_t& number) {
  CellResult result{.cell = cell};
  std::vector<double> held, verdict, recovered;
  for (int i = 0; i < count; ++i) {
    const auto& shape = shaped.job().surroundings().shape;
    const Victims victims = victimsOf(cell, i, shape, thisHost());
    const auto [row, share] = injectCell(cell, victims, shaped, number++);
    const bool named = !victims.needed.empty() && row.validationSeconds.has_value();
    ++result.count;
    result.named += named;
    result.innocent += row.innocent;
    if (named && row.trapSeconds) held.push_back(*row.trapSeconds);
    if (named) verdict.push_back(*row.validationSeconds);
    if (share) recovered.push_back(*share);
    fmt::print(stderr, "{:<15} {:<4} {}\n", nameOf(cell.kind), cell.factor, tableLine(i + 1, row));
  }
  result.heldSeconds = medianOf(held);
  result.verdictSeconds = medianOf(verdict);
  result.recovered = medianOf(recovered);
  if (result.recovered) result.bound = boundOf(cell, shaped.job().surroundings().shape);
  if (result.bound)
    fmt::print(stderr, "{:<15} {:<4} recovered {:.2f} of the slowdown, {:.2f} at most\n", nameOf(cell.kind),
               cell.factor, *result.recovered, *result.bound);
  return result;
}

}  // namespace

std::vector<CellResult> sweep(const std::vector<Cell>& cells, int count, const Surroundings& surroundings,
                              const Hear& hear) {
  const Costs costs = measureCosts(surroundings, hear);
  std::vector<CellResult> results;
  std::unique_ptr<ShapedJob> shaped;
  double share = 0;
  std::size_t number = 0;
  for (const Cell& cell : cells) {
    if (!shaped || exchangeShare(cell) != share) {
      share = exchangeShare(cell);
      shaped.reset();
      const auto ours = surroundings(fmt::format("share-{:.0f}", 100 * share));
      const int microBatches = costs.microBatchesFor(share, ours.shape.dataParallel);
      fmt::print(stderr, "a job of {} micro-batches an iteration\n{:<20} {}\n", microBatches, "", tableHead());
      shaped = std::make_unique<ShapedJob>(ours, microBatches, hear);
    }
    results.push_back(runCell(cell, count, *shaped, number));
  }
  return results;
}

nlohmann::ordered_json toJson(const CellResult& result) {
  return {{"kind", nameOf(result.cell.kind)},
          {"factor", orNull(result.cell.factor > 1 ? std::optional(result.cell.factor) : std::nullopt)},
          {"count", result.count},
          {"named", result.named},
          {"innocent", result.innocent},
          {"validation_s", orNull(result.heldSeconds)},
          {"verdict_s", orNull(result.verdictSeconds)},
          {"recovered", orNull(result.recovered)},
          {"bound", orNull(result.bound)}};
}

std::vector<std::string> shortcomingsOf(const std::vector<CellResult>& results) {
  std::vector<std::string> shortcomings;
  int strong = 0, strongNamed = 0, weak = 0, weakNamed = 0, innocent = 0, helped = 0;
  double shares = 0;
  for (const CellResult& each : results) {
    innocent += each.innocent;
    if (each.bound && *each.bound > 0) {
      const double share = *each.recovered / *each.bound, wanted = wantedShareOf(each.cell.kind);
      shares += share;
      ++helped;
      if (share < wanted)
        shortcomings.push_back(fmt::format("{} {}: {:.2f} of what a remedy could give back, {} are wanted",
                                           nameOf(each.cell.kind), each.cell.factor, share, wanted));
    }
    if (each.heldSeconds && *each.heldSeconds > longestHold)
      shortcomings.push_back(fmt::format("{} {}: the job was held for {:.1f} s, {:.0f} s at most are allowed",
                                         nameOf(each.cell.kind), each.cell.factor, *each.heldSeconds, longestHold));
    if (!each.cell.isOfLinks()) continue;
    if (each.cell.factor >= 1.5) strong += each.count, strongNamed += each.named;
    if (each.cell.factor == 1.3) weak += each.count, weakNamed += each.named;
  }
  if (strongNamed < 0.95 * strong)
    shortcomings.push_back(fmt::format("links from 1.5 on: {} of {} named, 95 % are wanted", strongNamed, strong));
  if (weakNamed < 0.8 * weak)
    shortcomings.push_back(fmt::format("links at 1.3: {} of {} named, four of five are wanted", weakNamed, weak));
  if (shares < wantedMean * helped)
    shortcomings.push_back(
        fmt::format("{:.2f} in the mean of what remedies could give back, {} are wanted", shares / helped, wantedMean));
  if (innocent > 0) shortcomings.push_back(fmt::format("{} innocent were named", innocent));
  return shortcomings;
}

}  // namespace falcon::injections
