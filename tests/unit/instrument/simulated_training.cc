#include "simulated_training.h"

#include <algorithm>
#include <deque>
#include <tuple>

namespace falcon::instrument {
namespace {

constexpr CommunicatorId tensorBase = 10'000, pipelineBase = 20'000, dataBase = 30'000;

CommunicatorId communicatorOf(CommunicatorId base, const std::vector<Rank>& members) {
  return base + static_cast<CommunicatorId>(members.front());
}

struct Action {
  enum Kind { compute, collective, send, receive, endIteration } kind = compute;
  double seconds = 0;  // of computing, or until all is there
  CommunicatorId communicator = 0;
  Rank peer = -1;  // of the job
  std::uint64_t bytes = 0;
};

class Run {
 public:
  Run(const SimulatedTraining& job, unsigned seed) : job_(job), random_(seed) {
    for (const auto& each : job.communicators()) members_[each.communicator] = each.members;
  }

  JobTimeline operator()(int iterations) {
    const auto size = static_cast<std::size_t>(job_.layout.size());
    JobTimeline timeline;
    timeline.iterations = iterations;
    timeline.ranks.resize(size);
    now_.assign(size, 0);
    std::vector<std::vector<Action>> programs(size);
    for (int iteration = 0; iteration < iterations; ++iteration) {
      drawLengths();
      for (std::size_t rank = 0; rank < size; ++rank) {
        const auto pause = job_.pauses.find({static_cast<Rank>(rank), iteration});
        if (pause != job_.pauses.end()) programs[rank].push_back({Action::compute, pause->second});
        addIteration(static_cast<Rank>(rank), programs[rank]);
      }
    }
    std::vector<std::size_t> next(size, 0);
    std::deque<std::size_t> runnable;
    for (std::size_t rank = 0; rank < size; ++rank) {
      timeline.ranks[rank].rank = static_cast<Rank>(rank);
      runnable.push_back(rank);
    }
    while (!runnable.empty()) {
      const std::size_t rank = runnable.front();
      runnable.pop_front();
      while (next[rank] < programs[rank].size() &&
             step(rank, programs[rank][next[rank]], timeline.ranks[rank], runnable))
        ++next[rank];
    }
    for (const RankTimeline& rank : timeline.ranks)
      for (const TimelineCall& call : rank.calls) timeline.end = std::max(timeline.end, call.leave);
    return timeline;
  }

 private:
  struct Meeting {
    std::map<Rank, double> entered;
    double over = -1;
  };

  double factor(const std::map<Rank, double>& factors, Rank rank) const {
    const auto found = factors.find(rank);
    return found == factors.end() ? 1 : found->second;
  }

  void drawLengths() {
    lengths_.assign(static_cast<std::size_t>(job_.layout.dataSize), 1);
    if (job_.sequenceLengths.empty()) return;
    std::uniform_int_distribution<std::size_t> pick(0, job_.sequenceLengths.size() - 1);
    for (double& length : lengths_) length = job_.sequenceLengths[pick(random_)];
  }

  void addIteration(Rank rank, std::vector<Action>& program) {
    const auto at = job_.layout.coordinatesOf(rank);
    std::uniform_real_distribution<> jitter(1 - job_.jitter, 1 + job_.jitter);
    const auto stage = job_.stages.find(at.pipeline);
    const double pace = factor(job_.slowRanks, rank) * (stage == job_.stages.end() ? 1 : stage->second) *
                        lengths_[static_cast<std::size_t>(at.data)];
    const auto tensorGroup = job_.layout.tensorGroup(rank), dataGroup = job_.layout.dataGroup(rank);
    const auto pipeline = communicatorOf(pipelineBase, job_.layout.pipelineGroup(rank));
    const auto neighbour = [&](int step) { return job_.layout.rankAt({at.data, at.pipeline + step, at.tensor}); };
    const bool first = at.pipeline == 0, last = at.pipeline == job_.layout.pipelineSize - 1;
    const auto layers = [&](double weight) {
      for (int layer = 0; layer < job_.layers; ++layer) {
        program.push_back({Action::compute, job_.computing * weight * pace * jitter(random_)});
        if (tensorGroup.size() > 1)
          program.push_back({Action::collective, job_.tensorSum, communicatorOf(tensorBase, tensorGroup), -1, 1 << 16});
      }
    };
    const auto forward = [&] {
      if (!first) program.push_back({Action::receive, job_.message, pipeline, neighbour(-1), 1 << 18});
      layers(1);
      if (!last) program.push_back({Action::send, job_.message, pipeline, neighbour(1), 1 << 18});
    };
    const auto backward = [&] {
      if (!last) program.push_back({Action::receive, job_.message, pipeline, neighbour(1), 1 << 18});
      layers(2);
      if (!first) program.push_back({Action::send, job_.message, pipeline, neighbour(-1), 1 << 18});
    };
    program.push_back({Action::compute, job_.loading * factor(job_.slowRanks, rank) * factor(job_.slowLoading, rank)});
    const int warmUp = std::min(job_.microBatches, job_.layout.pipelineSize - 1 - at.pipeline);
    for (int batch = 0; batch < warmUp; ++batch) forward();
    for (int batch = warmUp; batch < job_.microBatches; ++batch) forward(), backward();
    for (int batch = 0; batch < warmUp; ++batch) backward();
    if (dataGroup.size() > 1)
      program.push_back({Action::collective, job_.gradientSum, communicatorOf(dataBase, dataGroup), -1, 1 << 24});
  }

  // False: the rank has to wait for others.
  bool step(std::size_t index, const Action& action, RankTimeline& timeline, std::deque<std::size_t>& runnable) {
    const Rank rank = static_cast<Rank>(index);
    double& now = now_[index];
    if (action.kind == Action::compute) {
      now += action.seconds;
      return true;
    }
    const bool collective = action.kind == Action::collective, sends = action.kind == Action::send;
    const Rank from = collective ? -1 : sends ? rank : action.peer, to = collective ? -1 : sends ? action.peer : rank;
    const auto counter = std::make_tuple(action.communicator, from, to, rank);
    const std::uint64_t sequence = counters_[counter];
    Meeting& meeting = meetings_[{action.communicator, from, to, sequence}];
    if (meeting.entered.emplace(rank, now).second) {
      const std::size_t wanted = collective ? members_[action.communicator].size() : 2;
      if (meeting.entered.size() == wanted) {
        meeting.over = lastOf(meeting) + action.seconds * slowness(action, rank);
        for (const auto& [other, entered] : meeting.entered)
          if (other != rank) runnable.push_back(static_cast<std::size_t>(other));
      }
    }
    const bool atOnce = sends && !job_.sendsWait;
    if (meeting.over < 0 && !atOnce) return false;
    const double entered = meeting.entered[rank];
    // A message that nobody waits for is on its way from when it was sent.
    double leave = meeting.over;
    if (action.kind == Action::receive && !job_.sendsWait)
      leave = std::max(entered, meeting.entered[from] + action.seconds * slowness(action, rank));
    if (atOnce) leave = entered + 1e-6;
    now = leave;
    ++counters_[counter];
    const auto& members = members_[action.communicator];
    const auto place = std::find(members.begin(), members.end(), action.peer);
    timeline.calls.push_back({action.communicator,
                              collective ? Operation::allReduce
                              : sends    ? Operation::send
                                         : Operation::receive,
                              collective ? -1 : static_cast<Rank>(place - members.begin()), sequence, action.bytes,
                              nanoseconds(entered), nanoseconds(leave)});
    return true;
  }

  static Nanoseconds nanoseconds(double seconds) { return Nanoseconds(static_cast<std::int64_t>(seconds * 1e9)); }

  static double lastOf(const Meeting& meeting) {
    double last = 0;
    for (const auto& [rank, entered] : meeting.entered) last = std::max(last, entered);
    return last;
  }

  // A ring is as slow as its slowest link.
  double slowness(const Action& action, Rank rank) const {
    double worst = 1;
    const auto look = [&](Link link) {
      if (const auto found = job_.slowLinks.find(link); found != job_.slowLinks.end())
        worst = std::max(worst, found->second);
    };
    if (action.kind == Action::send) look({rank, action.peer});
    if (action.kind == Action::receive) look({action.peer, rank});
    if (action.kind == Action::collective) {
      const auto& ring = members_.at(action.communicator);
      for (std::size_t i = 0; i < ring.size(); ++i) look({ring[i], ring[(i + 1) % ring.size()]});
    }
    return worst;
  }

  const SimulatedTraining& job_;
  std::mt19937 random_;
  std::map<CommunicatorId, std::vector<Rank>> members_;
  std::vector<double> now_, lengths_;
  std::map<std::tuple<CommunicatorId, Rank, Rank, Rank>, std::uint64_t> counters_;
  std::map<std::tuple<CommunicatorId, Rank, Rank, std::uint64_t>, Meeting> meetings_;
};

}  // namespace

std::vector<CommunicatorMembers> SimulatedTraining::communicators() const {
  std::map<CommunicatorId, std::vector<Rank>> all;
  for (Rank rank = 0; rank < layout.size(); ++rank) {
    const auto add = [&](CommunicatorId base, const std::vector<Rank>& members) {
      if (members.size() > 1) all[communicatorOf(base, members)] = members;
    };
    add(tensorBase, layout.tensorGroup(rank));
    add(pipelineBase, layout.pipelineGroup(rank));
    add(dataBase, layout.dataGroup(rank));
  }
  std::vector<CommunicatorMembers> list;
  for (const auto& [id, members] : all) list.push_back({id, members});
  return list;
}

std::vector<CommunicatorShape> SimulatedTraining::shapes() const {
  std::map<CommunicatorId, CommunicatorShape> shapes;
  for (const CommunicatorMembers& each : communicators()) shapes[each.communicator] = {each.communicator, each.members};
  for (const RankTimeline& rank : run(1, 1).ranks)
    for (const TimelineCall& call : rank.calls) {
      CommunicatorShape& shape = shapes[call.communicator];
      (isPointToPoint(call.operation) ? shape.messages : shape.collectives) +=
          1.0 / static_cast<double>(shape.members.size());
    }
  std::vector<CommunicatorShape> list;
  for (const auto& [id, shape] : shapes) list.push_back(shape);
  return list;
}

std::vector<RankNow> profilesOf(const JobTimeline& timeline) {
  std::vector<RankNow> ranks;
  const double all = seconds(timeline.end - timeline.start);
  for (const RankTimeline& rank : timeline.ranks) {
    RankNow now{rank.rank, {}};
    std::map<CommunicatorId, double> inside;
    for (const TimelineCall& call : rank.calls) inside[call.communicator] += seconds(call.leave - call.enter);
    for (const auto& [communicator, spent] : inside) {
      now.profile.communicators.push_back({communicator, spent / timeline.iterations});
      now.profile.inLibrary += spent / timeline.iterations;
    }
    now.profile.own = all / timeline.iterations - now.profile.inLibrary;
    ranks.push_back(std::move(now));
  }
  return ranks;
}

JobTimeline SimulatedTraining::run(int iterations, unsigned seed) const {
  return Run(*this, seed)(iterations);
}

}  // namespace falcon::instrument
