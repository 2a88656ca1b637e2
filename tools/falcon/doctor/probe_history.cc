#include "doctor/probe_history.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/escaped.h"
#include "base/format.h"
#include "base/median.h"
#include "json_text.h"

namespace falcon::doctor {

std::string toLine(const ProbeRecord& record) {
  const nlohmann::ordered_json line{{"time", record.time},
                                    {"host", record.host},
                                    {"ranks", record.ranks},
                                    {"nodes", record.nodes},
                                    {"iteration_s", record.iteration},
                                    {"compute_s", record.compute},
                                    {"all_reduce_s", record.allReduce},
                                    {"slow", record.slow}};
  return tools::jsonText(line) + "\n";
}

Result<ProbeRecord> parseLine(const std::string& line) try {
  const auto read = nlohmann::json::parse(line);
  ProbeRecord record{read.at("time"),        read.at("host"),      read.at("ranks"),        read.at("nodes"),
                     read.at("iteration_s"), read.at("compute_s"), read.at("all_reduce_s"), read.at("slow")};
  if (!(record.iteration > 0) || !std::isfinite(record.iteration))
    return Error::invalidArgument("iteration_s is {}", record.iteration);
  return record;
} catch (const nlohmann::json::exception& error) {
  return Error::invalidArgument("not a line of a probe's history: {}", error.what());
}

ProbeVerdict compare(const ProbeRecord& now, std::span<const ProbeRecord> history) {
  std::vector<double> iterations, computes;
  const std::string host = validUtf8(now.host);  // as the history has it
  for (auto earlier = history.rbegin(); earlier != history.rend() && iterations.size() < mostHistory; ++earlier) {
    const bool alike = earlier->host == host && earlier->ranks == now.ranks && earlier->nodes == now.nodes;
    if (!alike || earlier->slow) continue;
    iterations.push_back(earlier->iteration);
    computes.push_back(earlier->compute);
  }
  if (iterations.size() < leastHistory)
    return {false, 0,
            fmt::format("{:.2f} ms an iteration; {} of {} runs that a comparison needs", 1e3 * now.iteration,
                        iterations.size(), leastHistory)};
  const double usual = median(iterations);
  ProbeVerdict verdict;
  verdict.ratio = now.iteration / usual;
  verdict.slow = verdict.ratio > slowRatio;
  verdict.text = fmt::format("{:.2f} ms an iteration, {:.2f} times the median of {} runs ({:.2f} ms)",
                             1e3 * now.iteration, verdict.ratio, iterations.size(), 1e3 * usual);
  if (verdict.slow)
    verdict.text += now.compute > slowRatio * median(computes) ? ": computing is slow" : ": communication is slow";
  return verdict;
}

}  // namespace falcon::doctor
