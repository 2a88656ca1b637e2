#include "perf/perf_options.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace falcon::perf {

std::optional<std::uint64_t> parseBytes(const std::string& text) {
  size_t used = 0;
  std::uint64_t value = 0;
  while (used < text.size() && std::isdigit(static_cast<unsigned char>(text[used])) && value < (1ULL << 50))
    value = value * 10 + static_cast<std::uint64_t>(text[used++] - '0');
  if (used == 0) return std::nullopt;
  const std::string unit = text.substr(used);
  if (unit.empty()) return value;
  if (unit.size() > 1) return std::nullopt;
  switch (std::toupper(static_cast<unsigned char>(unit[0]))) {
    case 'K':
      return value << 10;
    case 'M':
      return value << 20;
    case 'G':
      return value << 30;
    default:
      return std::nullopt;
  }
}

const std::vector<NamedType>& namedTypes() {
  static const std::vector<NamedType> types = {
      {"int8", ncclInt8},      {"uint8", ncclUint8},      {"int32", ncclInt32},  {"uint32", ncclUint32},
      {"int64", ncclInt64},    {"uint64", ncclUint64},    {"half", ncclFloat16}, {"float", ncclFloat32},
      {"double", ncclFloat64}, {"bfloat16", ncclBfloat16}};
  return types;
}

const std::vector<NamedOp>& namedOps() {
  static const std::vector<NamedOp> ops = {
      {"sum", ncclSum}, {"prod", ncclProd}, {"max", ncclMax}, {"min", ncclMin}, {"avg", ncclAvg}};
  return ops;
}

namespace {

std::uint64_t bytesOption(const char* option, const std::string& text) {
  const auto bytes = parseBytes(text);
  if (!bytes) throw std::invalid_argument(fmt::format("{} {}: give bytes, as 8, 64K, 1M or 2G", option, text));
  return *bytes;
}

/// More threads, each with its communicator's connections, are a mistake.
constexpr int mostThreads = 1024;

int numberOption(const char* option, const std::string& text, int least) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < least)
    throw std::invalid_argument(fmt::format("{} {}: give a whole number, {} or more", option, text, least));
  return value;
}

double factorOption(const char* option, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 1) || !std::isfinite(value))
    throw std::invalid_argument(fmt::format("{} {}: give a number larger than 1, as 2", option, text));
  return value;
}

template <class Named>
std::vector<Named> choose(const char* option, const std::string& name, const std::vector<Named>& all) {
  if (name == "all") return all;
  std::string known;
  for (const Named& each : all) {
    if (name == each.name) return {each};
    known += std::string(known.empty() ? "" : ", ") + each.name;
  }
  throw std::invalid_argument(fmt::format("{} {}: choose one of {} or all", option, name, known));
}

}  // namespace

PerfPlan makePlan(const PerfOptions& options) {
  const auto row = findCollective(options.collective);
  if (!row) {
    std::string known;
    for (const CollectiveRow& each : collectiveRows()) known += std::string(known.empty() ? "" : ", ") + each.name;
    throw std::invalid_argument(fmt::format("no collective named {}; choose one of {}", options.collective, known));
  }
  const std::uint64_t low = bytesOption("-b", options.minBytes);
  const std::uint64_t high = bytesOption("-e", options.maxBytes);
  if (low > high)
    throw std::invalid_argument(fmt::format("-b {} is larger than -e {}", options.minBytes, options.maxBytes));
  PerfPlan plan;
  plan.row = *row;
  plan.maxBytes = high;
  if (!options.stepFactor.empty()) plan.stepFactor = factorOption("-f", options.stepFactor);
  plan.stepBytes = options.stepBytes.empty() ? std::uint64_t{1} << 20 : bytesOption("-i", options.stepBytes);
  if (plan.stepBytes == 0) throw std::invalid_argument("-i 0: the step must be at least 1 byte");
  plan.iterations = numberOption("-n", options.iterations, 1);
  plan.warmup = numberOption("-w", options.warmup, 0);
  plan.check = numberOption("-c", options.check, 0);
  plan.root = numberOption("-r", options.root, 0);
  if (!options.threads.empty()) plan.threads = numberOption("-t", options.threads, 1);
  if (plan.threads > mostThreads)
    throw std::invalid_argument(fmt::format("-t {}: at most {} threads; more ranks need processes: falcon run -n",
                                            options.threads, mostThreads));
  plan.json = options.json;
  plan.types = choose("-d", options.type, namedTypes());
  if (row->reduces)
    plan.ops = choose("-o", options.op, namedOps());
  else
    plan.ops = {{"none", ncclSum}};
  for (std::uint64_t size = low; size <= high;) {
    plan.sizes.push_back(size);
    // A factor may lead beyond what a whole number holds.
    const double grown = static_cast<double>(size) * plan.stepFactor;
    if (grown > static_cast<double>(high)) break;
    size = plan.stepFactor != 0 ? std::max(static_cast<std::uint64_t>(grown), size + 1) : size + plan.stepBytes;
  }
  return plan;
}

}  // namespace falcon::perf
