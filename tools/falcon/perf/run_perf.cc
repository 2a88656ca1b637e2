// Measures a plan on every rank and prints nccl-tests' table from rank 0.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

#include "host_unique_id.h"
#include "json_text.h"
#include "perf/check.h"
#include "perf/perf_options.h"

namespace falcon::perf {
namespace {

using json = nlohmann::json;

void must(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  throw std::runtime_error(
      fmt::format("{} failed: {}: {}", what, ncclGetErrorString(result), ncclGetLastError(nullptr)));
}

struct Timing {
  double microseconds = 0;
  double algorithmGBs = 0;
  double busGBs = 0;
  long wrong = -1;  ///< -1: not checked
};

/// One rank: its communicator and buffers.
class RankRun {
 public:
  RankRun(const PerfPlan& plan, ncclUniqueId id, int rank, int ranks) : plan_(plan), rank_(rank), ranks_(ranks) {
    must(ncclCommInitRank(&communicator_, ranks, id, rank), "ncclCommInitRank");
  }
  ~RankRun() {
    if (communicator_) ncclCommDestroy(communicator_);
  }
  RankRun(const RankRun&) = delete;
  RankRun& operator=(const RankRun&) = delete;

  void run(json* lines) {
    if (rank_ == 0) printHead();
    double busSum = 0;
    long lineCount = 0, wrongSum = 0;
    for (const NamedType& type : plan_.types) {
      for (const NamedOp& op : plan_.ops) {
        for (const std::uint64_t size : plan_.sizes) {
          const Counts counts = countsFor(plan_.row.collective, size, elementSizeOf(type.type), ranks_);
          const Timing out = measure(counts, type, op, false);
          const Timing in = measure(counts, type, op, true);
          busSum += out.busGBs + in.busGBs;
          lineCount += 2;
          wrongSum += std::max(0L, out.wrong) + std::max(0L, in.wrong);
          if (rank_ == 0) printLine(counts, type, op, out, in, lines);
        }
      }
    }
    wrong_ = wrongSum;
    averageBus_ = lineCount ? busSum / static_cast<double>(lineCount) : 0;
    if (rank_ == 0) {
      fmt::print("# Out of bounds values : {} {}\n# Avg bus bandwidth    : {:g} \n#\n", wrongSum,
                 wrongSum == 0 ? "OK" : "FAILED", averageBus_);
      std::fflush(stdout);
    }
  }
  long wrong() const { return wrong_; }
  double averageBus() const { return averageBus_; }

 private:
  void printHead() const {
    fmt::print(
        "# nThread {} nGpus 1 minBytes {} maxBytes {} step: {} warmup iters: {} iters: {} agg iters: 1 validation: {} "
        "graph: 0\n#\n",
        std::max(1, plan_.threads), plan_.sizes.front(), plan_.maxBytes,
        plan_.stepFactor != 0 ? fmt::format("{:g}(factor)", plan_.stepFactor)
                              : fmt::format("{}(bytes)", plan_.stepBytes),
        plan_.warmup, plan_.iterations, plan_.check);
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    fmt::print("# Using devices\n");
    for (int rank = 0; rank < ranks_; ++rank)
      fmt::print("#  Rank {:2} Group  0 {}on {:>10} device {:2} host memory\n", rank,
                 rank == 0 ? fmt::format("Pid {:6} ", getpid()) : "", host, rank);
    fmt::print("#\n# {} \n#\n", plan_.row.name);
    fmt::print(
        "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}           out-of-place                       in-place          \n", "",
        "", "", "", "");
    fmt::print("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}\n",
               "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw",
               "#wrong");
    fmt::print("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}  {:>6}\n", "(B)",
               "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
  }

  static std::string cell(const Timing& t) {
    const std::string wrong = t.wrong < 0 ? "N/A" : std::to_string(t.wrong);
    const std::string time =
        t.microseconds >= 10000 ? fmt::format("{:.0f}", t.microseconds) : fmt::format("{:.2f}", t.microseconds);
    return fmt::format("  {:>7}  {:>6.2f}  {:>6.2f}  {:>6}", time, t.algorithmGBs, t.busGBs, wrong);
  }

  size_t shownBytes(const Counts& counts, const NamedType& type) const {
    return std::max(counts.send, counts.receive) * elementSizeOf(type.type);
  }

  void printLine(const Counts& counts, const NamedType& type, const NamedOp& op, const Timing& out, const Timing& in,
                 json* lines) const {
    const int root = plan_.row.rooted ? plan_.root : -1;
    fmt::print("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", shownBytes(counts, type), counts.shown, type.name, op.name,
               root, cell(out), cell(in));
    std::fflush(stdout);
    if (!lines) return;
    const auto side = [](const Timing& t) {
      return json{{"time", t.microseconds},
                  {"alg_bw", t.algorithmGBs},
                  {"bus_bw", t.busGBs},
                  {"nwrong", t.wrong < 0 ? json("N/A") : json(std::to_string(t.wrong))}};
    };
    lines->push_back({{"size", shownBytes(counts, type)},
                      {"count", counts.shown},
                      {"type", type.name},
                      {"redop", op.name},
                      {"root", root},
                      {"out_of_place", side(out)},
                      {"in_place", side(in)}});
  }

  double allReduceOne(double value, ncclRedOp_t op) {
    double result = 0;
    must(ncclAllReduce(&value, &result, 1, ncclFloat64, op, communicator_, nullptr), "ncclAllReduce");
    return result;
  }

  Timing measure(const Counts& counts, const NamedType& type, const NamedOp& op, bool inPlace) {
    const size_t element = elementSizeOf(type.type);
    const Collective collective = plan_.row.collective;
    const InPlaceOffsets offsets = inPlace ? inPlaceOffsets(collective, counts, rank_) : InPlaceOffsets{};
    const size_t shared = std::max(counts.send, counts.receive);
    try {
      sendBuffer_.resize(std::max(sendBuffer_.size(), (inPlace ? shared : counts.send) * element));
      receiveBuffer_.resize(std::max(receiveBuffer_.size(), shared * element));
    } catch (const std::exception&) {
      throw std::runtime_error(
          fmt::format("no memory for two buffers of {} bytes in each rank: choose a smaller -e", shared * element));
    }
    char* receive = receiveBuffer_.data() + (inPlace ? offsets.receive * element : 0);
    char* send = inPlace ? receiveBuffer_.data() + offsets.send * element : sendBuffer_.data();
    const bool separate = collective == Collective::allToAll || collective == Collective::sendReceive;
    if (inPlace && separate) send = sendBuffer_.data();  // there is no in-place form: the same call again
    const Buffers buffers{send, receive};
    const auto once = [&] {
      must(launch(collective, buffers, counts, type.type, op.op, plan_.root, rank_, ranks_, element, communicator_),
           plan_.row.name);
    };
    for (int i = 0; i < plan_.warmup; ++i) once();
    allReduceOne(0, ncclSum);  // all start together
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < plan_.iterations; ++i) once();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    Timing timing;
    const double perCall = allReduceOne(spent.count(), ncclSum) / ranks_ / plan_.iterations;
    timing.microseconds = perCall * 1e6;
    timing.algorithmGBs = static_cast<double>(shownBytes(counts, type)) / perCall / 1e9;
    timing.busGBs = timing.algorithmGBs * busFactor(collective, ranks_);
    if (plan_.check) {
      std::memset(receiveBuffer_.data(), 0xA5, receiveBuffer_.size());
      fill(send, counts.send, type.type, rank_, 0);
      once();
      const Expectation expectation{collective, counts, type.type, op.op, plan_.root, rank_, ranks_};
      timing.wrong = static_cast<long>(allReduceOne(static_cast<double>(countWrong(receive, expectation)), ncclSum));
    }
    return timing;
  }

  const PerfPlan& plan_;
  const int rank_, ranks_;
  ncclComm_t communicator_ = nullptr;
  std::vector<char> sendBuffer_, receiveBuffer_;
  long wrong_ = 0;
  double averageBus_ = 0;
};

int environmentNumber(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text && *text ? std::atoi(text) : fallback;
}

}  // namespace

int runPerf(const PerfPlan& plan) {
  const bool launched = std::getenv("RANK") && std::getenv("WORLD_SIZE");
  if (launched && plan.threads > 1)
    throw std::invalid_argument("-t makes ranks of threads; under a launcher every process is one rank");
  const int ranks = launched ? environmentNumber("WORLD_SIZE", 1) : std::max(1, plan.threads);
  if (plan.root >= ranks)
    throw std::invalid_argument(fmt::format("-r {}: the root must be a rank, 0 to {}", plan.root, ranks - 1));
  // Under a launcher the master's address is the rendezvous: every rank then makes the same unique id.
  if (launched && ranks > 1 && !std::getenv("NCCL_COMM_ID")) {
    const char* address = std::getenv("MASTER_ADDR");
    const char* port = std::getenv("MASTER_PORT");
    if (!address || !port)
      throw std::invalid_argument("RANK is set but MASTER_ADDR and MASTER_PORT are not; use `falcon run`");
    setenv("NCCL_COMM_ID", fmt::format("{}:{}", address, port).c_str(), 1);
  }
  const bool first = !launched || environmentNumber("RANK", 0) == 0;
  std::ofstream file;
  if (first && !plan.json.empty()) {
    file.open(plan.json);  // before hours of measuring
    if (!file) throw std::invalid_argument(fmt::format("-J {}: the file cannot be written; name another", plan.json));
  }
  ncclUniqueId id;
  must(tools::hostUniqueId(id), "ncclGetUniqueId");
  json lines = json::array();
  std::vector<std::string> failures(static_cast<size_t>(ranks));
  std::vector<long> wrong(static_cast<size_t>(ranks), 0);
  double averageBus = 0;
  std::once_flag told;
  const auto one = [&](int rank) {
    try {
      RankRun run(plan, id, rank, ranks);
      run.run(rank == 0 && !plan.json.empty() ? &lines : nullptr);
      wrong[static_cast<size_t>(rank)] = run.wrong();
      if (rank == 0) averageBus = run.averageBus();
    } catch (const std::exception& exception) {
      failures[static_cast<size_t>(rank)] = exception.what();
      // At once: the others may wait long for a rank that does not come.
      if (!launched)
        std::call_once(told, [&] {
          fmt::print(stderr, "falcon perf: rank {}: {}; the other ranks are waited for\n", rank, exception.what());
        });
    }
  };
  if (launched) {
    one(environmentNumber("RANK", 0));
  } else {
    std::vector<std::thread> threads;
    for (int rank = 1; rank < ranks; ++rank) threads.emplace_back(one, rank);
    one(0);
    for (std::thread& thread : threads) thread.join();
  }
  for (const std::string& failure : failures)
    if (!failure.empty()) throw std::runtime_error(failure);
  if (file.is_open()) {
    file << tools::jsonText(json{{"collective", plan.row.name},
                                 {"ranks", ranks},
                                 {"results", lines},
                                 {"average_bus_bandwidth", {{"bandwidth", averageBus}}}},
                            2)
         << '\n';
    if (!file.flush()) throw std::runtime_error(fmt::format("-J {}: the file cannot be written", plan.json));
  }
  return *std::max_element(wrong.begin(), wrong.end()) == 0 ? 0 : 1;
}

}  // namespace falcon::perf
