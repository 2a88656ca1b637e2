#include "perf/perf_options.h"

#include <fmt/format.h>

#include <cctype>
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
  if (options.stepFactor != 0 && options.stepFactor <= 1)
    throw std::invalid_argument(fmt::format("-f {}: the factor must be larger than 1", options.stepFactor));
  if (options.iterations < 1)
    throw std::invalid_argument(fmt::format("-n {}: at least 1 iteration", options.iterations));
  if (options.warmup < 0) throw std::invalid_argument(fmt::format("-w {}: 0 or more", options.warmup));
  PerfPlan plan{*row, {}, choose("-d", options.type, namedTypes()), {}, options};
  if (row->reduces)
    plan.ops = choose("-o", options.op, namedOps());
  else
    plan.ops = {{"none", ncclSum}};
  const std::uint64_t step = options.stepBytes.empty() ? std::uint64_t{1} << 20 : bytesOption("-i", options.stepBytes);
  if (step == 0) throw std::invalid_argument("-i 0: the step must be at least 1 byte");
  for (std::uint64_t size = low; size <= high;) {
    plan.sizes.push_back(size);
    const auto next = options.stepFactor != 0
                          ? static_cast<std::uint64_t>(static_cast<double>(size) * options.stepFactor)
                          : size + step;
    size = std::max(next, size + 1);
  }
  return plan;
}

}  // namespace falcon::perf
