#include "tune/best_lines.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace falcon::tune {
namespace {

using collectives::Extent;
using collectives::TuningLine;

auto sizeKey(const Sample& sample) {
  return std::tuple(sample.operation, sample.extent, sample.ranks, sample.bytes);
}

bool sameSeries(const Sample& sample, const TuningLine& line) {
  return sample.operation == line.operation && sample.extent == line.extent && sample.ranks == line.fromRanks;
}

/// The choice among the samples of one size.
const Sample& bestOf(const std::vector<Sample>& samples, std::size_t begin, std::size_t end, double worth) {
  const std::string usual =
      builtInChoice(samples[begin].operation, samples[begin].extent, samples[begin].bytes, samples[begin].ranks);
  const Sample* best = nullptr;
  double bestTime = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const double time = samples[i].microseconds / (samples[i].algorithm == usual ? worth : 1);
    if (best && time >= bestTime) continue;
    best = &samples[i];
    bestTime = time;
  }
  return *best;
}

std::size_t halfway(std::size_t one, std::size_t other) {
  return static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(one) * static_cast<double>(other))));
}

}  // namespace

std::string builtInChoice(Operation operation, Extent extent, std::size_t bytes, int ranks) {
  if (extent == Extent::node) {
    if (const auto* direct = collectives::chooseDirect(operation, bytes, ranks)) return direct->name;
  }
  const auto* algorithm =
      collectives::findAlgorithm(operation, bytes, ranks, collectives::PreferenceMasks::everything, nullptr, extent);
  return algorithm ? algorithm->name : "messages";
}

std::vector<TuningLine> bestLines(std::vector<Sample> samples, double worth) {
  std::stable_sort(samples.begin(), samples.end(),
                   [](const Sample& one, const Sample& other) { return sizeKey(one) < sizeKey(other); });
  std::vector<TuningLine> lines;
  std::size_t lastBytes = 0;
  for (std::size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    while (end < samples.size() && sizeKey(samples[end]) == sizeKey(samples[begin])) ++end;
    const Sample& best = bestOf(samples, begin, end, worth);
    const bool continues = !lines.empty() && sameSeries(best, lines.back());
    if (!continues || best.algorithm != lines.back().algorithm) {
      const std::size_t from = continues ? halfway(lastBytes, best.bytes) : 0;
      if (continues) lines.back().toBytes = from;
      lines.push_back(
          {best.operation, best.extent, best.ranks, from, std::numeric_limits<std::size_t>::max(), best.algorithm});
    }
    lastBytes = best.bytes;
  }
  return lines;
}

}  // namespace falcon::tune
