#include "demo/numbered_iterations.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/median.h"

namespace falcon::demo {

std::vector<NumberedIteration> parseNumberedLog(const std::string& text) {
  std::vector<NumberedIteration> iterations;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object()) continue;
    iterations.push_back({entry.value("iteration", std::uint64_t{0}), entry.value("start", 0.0),
                          entry.value("end", 0.0), entry.value("loss", 0.0)});
  }
  return iterations;
}

double medianMilliseconds(std::span<const NumberedIteration> iterations) {
  std::vector<double> times;
  for (const NumberedIteration& each : iterations) times.push_back((each.end - each.start) * 1e3);
  return median(std::move(times), 0);
}

LossComparison compareLosses(std::span<const NumberedIteration> run, std::span<const NumberedIteration> undisturbed) {
  std::map<std::uint64_t, double> losses;
  for (const NumberedIteration& each : undisturbed) losses[each.number] = each.loss;
  LossComparison comparison;
  for (const NumberedIteration& each : run) {
    const auto same = losses.find(each.number);
    if (same == losses.end()) continue;
    ++comparison.compared;
    comparison.largestDifference = std::max(comparison.largestDifference, std::abs(each.loss / same->second - 1));
  }
  return comparison;
}

}  // namespace falcon::demo
