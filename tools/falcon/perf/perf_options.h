// The options of `falcon perf`: nccl-tests' letters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nccl.h"
#include "perf/benchmark_case.h"

namespace falcon::perf {

/// As they were given.
struct PerfOptions {
  std::string collective = "all_reduce";
  std::string minBytes = "8";
  std::string maxBytes = "32M";
  std::string stepBytes;
  std::string stepFactor;
  std::string iterations = "20";
  std::string warmup = "5";
  std::string check = "1";
  std::string type = "float";
  std::string op = "sum";
  std::string root = "0";
  std::string threads;
  std::string json;
};

/// "8", "64K", "1M", "2G" (powers of 1024); nothing for anything else.
std::optional<std::uint64_t> parseBytes(const std::string& text);

struct NamedType {
  const char* name;
  ncclDataType_t type;
};
struct NamedOp {
  const char* name;
  ncclRedOp_t op;
};
const std::vector<NamedType>& namedTypes();
const std::vector<NamedOp>& namedOps();

/// What is measured: options, checked and resolved.
struct PerfPlan {
  CollectiveRow row;
  std::vector<std::uint64_t> sizes;
  std::vector<NamedType> types;
  std::vector<NamedOp> ops;
  double stepFactor = 0;  ///< 0: sizes grow by stepBytes
  std::uint64_t stepBytes = 0, maxBytes = 0;
  int iterations = 0, warmup = 0, check = 0;
  int root = 0;
  int threads = 0;   ///< 0: not given
  std::string json;  ///< "": no such file
};
/// Throws std::invalid_argument with a message that names value and remedy.
PerfPlan makePlan(const PerfOptions& options);

/// Runs it as this process's part of the job (RANK set) or with ranks as threads. Returns the exit code.
int runPerf(const PerfPlan& plan);

}  // namespace falcon::perf
