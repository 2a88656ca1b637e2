#include "injections/episode.h"

#include <algorithm>
#include <stdexcept>

#include "injections/victim.h"

namespace falcon::injections {
namespace {

constexpr double quiet = 12;  ///< of an episode in which nothing is injected
constexpr int attempts = 3;

double timeOf(const nlohmann::json& report, const char* name) {
  return report.is_object() && report.contains(name) ? report[name].value("monotonic", 0.0) : 0.0;
}

/// All of them, or none: where one cannot be slowed the others are let go.
std::vector<Victim> slow(SlowJob& job, const Drawn& drawn) {
  std::string problem;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    std::vector<Victim> victims;
    for (const demo::Injection& each : drawn) victims.emplace_back(job, each, victims.size());
    const auto settled = [&] {
      return std::all_of(victims.begin(), victims.end(), [](Victim& each) { return each.isSlowed(); }) ||
             std::any_of(victims.begin(), victims.end(), [](Victim& each) { return each.ended(); });
    };
    const bool all = job.lookUntil(settled, forEffect) &&
                     std::none_of(victims.begin(), victims.end(), [](Victim& each) { return each.ended(); });
    if (all) return victims;
    for (Victim& each : victims) {
      each.end();
      (void)each.report();
      problem += each.errors();
    }
    job.wait(5);
  }
  throw std::runtime_error("the job could not be slowed: " + problem);
}

}  // namespace

Episode injectOnce(SlowJob& job, const Drawn& drawn) {
  Episode episode;
  episode.truth = culpritsOf(drawn);
  if (drawn.empty()) {
    job.wait(quiet);
  } else {
    std::vector<Victim> victims = slow(job, drawn);
    if (job.lookUntil([&] { return allNamed(episode.truth, job.said()); }, forVerdict)) job.wait(afterVerdict);
    for (Victim& each : victims) each.end();
    for (Victim& each : victims) {
      const auto report = each.report();
      const double started = timeOf(report, "started");
      episode.started = episode.started == 0 ? started : std::min(episode.started, started);
      episode.effective = std::max(episode.effective, timeOf(report, "confirmed"));
      episode.relieved = std::max(episode.relieved, timeOf(report, "ended"));
    }
  }
  job.lookUntil([&] { return allRelieved(job.said(), episode.relieved); }, forRelief);
  episode.said = job.takeSaid();
  episode.iterationEnds = job.takeIterationEnds();
  return episode;
}

}  // namespace falcon::injections
