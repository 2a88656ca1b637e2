// Programs of jobs for the tests of draining: what each rank enters, in its order.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace falcon::test {

/// A collective of a communicator, or a message between two ranks of the job over communicator 0, which has them all.
struct ProgramCall {
  std::uint64_t communicator = 0;
  int from = -1;
  int to = -1;
  auto operator<=>(const ProgramCall&) const = default;
};
/// What one rank enters at once: a call, or a group over several communicators.
using ProgramEvent = std::vector<ProgramCall>;

struct DrainProgram {
  std::vector<std::vector<ProgramEvent>> ranks;
  std::map<std::uint64_t, std::set<int>> groups;  ///< members of the communicators
};

inline bool takesPart(const DrainProgram& program, int rank, const ProgramCall& call) {
  return call.from < 0 ? program.groups.at(call.communicator).contains(rank) : call.from == rank || call.to == rank;
}

/// Any order of communicators, messages and groups that some order of the whole job makes possible.
DrainProgram randomProgram(std::mt19937& random, int ranks, int events);

/// Two replicas of stages in a line (`chunks` above 1: in a ring, as interleaved schedules need it): messages forward,
/// in the steady state grouped with those backward; then data parallelism's AllReduce in each stage, and one over all.
DrainProgram pipelineProgram(int stages, int microBatches, int chunks);

/// One forward, one backward, as a stage of a pipeline sees it: forwards until the pipeline is full, then each forward
/// in one group with a backward, then the backwards that are left; at the end data parallelism's AllReduce.
DrainProgram oneForwardOneBackward(int stages, int microBatches);

}  // namespace falcon::test
