#include "harness/drain_programs.h"

#include <algorithm>

namespace falcon::test {

DrainProgram randomProgram(std::mt19937& random, int ranks, int events) {
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  DrainProgram program;
  program.ranks.resize(ranks);
  const int communicators = 1 + below(5);
  for (int id = 0; id < communicators; ++id) {
    std::set<int>& members = program.groups[id];
    while (members.size() < 2)
      for (int rank = 0; rank < ranks; ++rank)
        if (id == 0 || below(2)) members.insert(rank);
  }
  for (int i = 0; i < events; ++i) {
    std::vector<ProgramEvent> added(ranks);
    const int parts = below(3) ? 1 : 1 + below(4);
    for (int part = 0; part < parts; ++part) {
      ProgramCall call{static_cast<std::uint64_t>(below(communicators))};
      if (below(2)) {
        call.from = below(ranks);
        call.to = (call.from + 1 + below(ranks - 1)) % ranks;
        call.communicator = 0;
      }
      for (int rank = 0; rank < ranks; ++rank)
        if (takesPart(program, rank, call)) added[rank].push_back(call);
    }
    for (int rank = 0; rank < ranks; ++rank)
      if (!added[rank].empty()) program.ranks[rank].push_back(added[rank]);
  }
  return program;
}

DrainProgram pipelineProgram(int stages, int microBatches, int chunks) {
  DrainProgram program;
  const int ranks = 2 * stages;
  program.ranks.resize(ranks);
  for (int rank = 0; rank < ranks; ++rank) program.groups[0].insert(rank);
  for (int stage = 0; stage < stages; ++stage) program.groups[1 + stage] = {stage, stages + stage};
  const auto message = [&](int from, int to) { return ProgramCall{0, from, to}; };
  for (int replica = 0; replica < 2; ++replica) {
    const int first = replica * stages;
    // Boundaries between virtual stages, as the wave of forward and backward passes crosses them.
    for (int step = 0; step < microBatches * chunks + stages; ++step)
      for (int stage = 0; stage < (chunks > 1 ? stages : stages - 1); ++stage) {
        const int from = first + stage, to = first + (stage + 1) % stages;
        if (from == to) continue;
        ProgramEvent event{message(from, to)};
        if (step >= stages) event.push_back(message(to, from));  // forward and backward at once
        program.ranks[from].push_back(event);
        program.ranks[to].push_back(event);
      }
  }
  for (int stage = 0; stage < stages; ++stage)
    for (const int rank : program.groups[1 + stage])
      program.ranks[rank].push_back({ProgramCall{static_cast<std::uint64_t>(1 + stage)}});
  for (int rank = 0; rank < ranks; ++rank) program.ranks[rank].push_back({ProgramCall{0}});
  return program;
}

DrainProgram oneForwardOneBackward(int stages, int microBatches) {
  DrainProgram program;
  program.ranks.resize(stages);
  for (int rank = 0; rank < stages; ++rank) program.groups[0].insert(rank);
  for (int stage = 0; stage < stages; ++stage) {
    auto& events = program.ranks[stage];
    const auto message = [&](int from, int to) {
      return from < 0 || to < 0 || from >= stages || to >= stages ? ProgramEvent{}
                                                                  : ProgramEvent{ProgramCall{0, from, to}};
    };
    const auto add = [&](ProgramEvent event, const ProgramEvent& other = {}) {
      event.insert(event.end(), other.begin(), other.end());
      if (!event.empty()) events.push_back(event);
    };
    const ProgramEvent fromBefore = message(stage - 1, stage), toNext = message(stage, stage + 1);
    const ProgramEvent fromNext = message(stage + 1, stage), toBefore = message(stage, stage - 1);
    const int warmUp = std::min(stages - 1 - stage, microBatches);
    for (int i = 0; i < warmUp; ++i) add(fromBefore), add(toNext);
    if (warmUp < microBatches) add(fromBefore);
    for (int i = warmUp; i < microBatches; ++i) {
      add(toNext, fromNext);
      if (i + 1 < microBatches)
        add(toBefore, fromBefore);
      else
        add(toBefore);
    }
    for (int i = 0; i < warmUp; ++i) add(fromNext), add(toBefore);
    add({ProgramCall{0}});
  }
  return program;
}

}  // namespace falcon::test
