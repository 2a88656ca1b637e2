#include "control/peers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/call.h"
#include "control/decisions.h"
#include "instrument/peer_comparison.h"

namespace falcon::control {
namespace {

using instrument::CommunicatorShape;

/// One member's calls of a communicator, the newest of the baseline.
struct KnownCalls {
  double count = 0, messages = 0, bytes = 0;
};

// Whole iterations only: a window cut anywhere would give groups of equal volume different ones.
std::map<CommunicatorId, KnownCalls> knownCalls(const MemberView& member, const RankMeans& means) {
  std::map<CommunicatorId, std::size_t> available, wanted;
  for (const auto& call : member.healthyCalls) ++available[call.communicator];
  for (const auto& [id, calls] : available) {
    const auto expected = means.calls.find(id);
    const auto period = expected == means.calls.end() ? 0 : static_cast<std::size_t>(std::lround(expected->second));
    wanted[id] = period == 0 ? 0 : calls / period * period;
  }
  std::map<CommunicatorId, KnownCalls> known;
  for (auto call = member.healthyCalls.rbegin(); call != member.healthyCalls.rend(); ++call) {
    std::size_t& left = wanted[call->communicator];
    if (left == 0) continue;
    --left;
    KnownCalls& sum = known[call->communicator];
    sum.count += 1;
    sum.messages += isPointToPoint(call->operation);
    sum.bytes += static_cast<double>(call->bytes);
  }
  return known;
}

/// What the layout that all members registered says of them: they differ in one coordinate, or are the whole job.
instrument::CommunicatorRole registeredRole(const JobView& job, const std::vector<Rank>& jobRanks) {
  using Role = instrument::CommunicatorRole;
  std::set<int> data, pipeline, tensor;
  int all = 0;
  for (const Rank rank : jobRanks) {
    const auto process = job.processOf(rank);
    const MemberView* member = process ? &job.members().at(*process) : nullptr;
    if (!member || !member->layout) return Role::unknown;
    const PartKnown& part = *member->layout;
    data.insert(part.dataParallelIndex);
    pipeline.insert(part.pipelineParallelIndex);
    tensor.insert(part.tensorParallelIndex);
    all = part.dataParallelSize * part.pipelineParallelSize * part.tensorParallelSize;
  }
  const bool byData = data.size() > 1, byPipeline = pipeline.size() > 1, byTensor = tensor.size() > 1;
  if (byData + byPipeline + byTensor > 1) return static_cast<int>(jobRanks.size()) == all ? Role::job : Role::unknown;
  if (byData) return Role::data;
  if (byPipeline) return Role::pipeline;
  return byTensor ? Role::tensor : Role::unknown;
}

double ownTimeAt(double microBatches, const RankMeans& means) {
  return means.outsidePerMicroBatch * microBatches;
}

}  // namespace

std::vector<CommunicatorShape> shapesOf(const JobView& job) {
  std::map<CommunicatorId, CommunicatorShape> shapes;
  std::map<CommunicatorId, int> members;
  for (const auto& [id, communicator] : job.communicators()) {
    shapes[id].communicator = id;
    shapes[id].members = communicator.jobRanks;
    shapes[id].registered = registeredRole(job, communicator.jobRanks);
  }
  for (const auto& [process, member] : job.members()) {
    const RankMeans means = JobView::means(member, JobView::keptSamples);
    const auto known = knownCalls(member, means);
    for (const auto& [id, calls] : means.calls) {
      const auto shape = shapes.find(id);
      if (shape == shapes.end()) continue;
      ++members[id];
      double messages = 0;
      if (const auto seen = known.find(id); seen != known.end()) {
        messages = seen->second.messages / seen->second.count;
        shape->second.bytes += calls * seen->second.bytes / seen->second.count;
      } else if (const auto traffic = member.traffic.find(id); traffic != member.traffic.end()) {
        messages = traffic->second.collectives ? 0 : 1;
      }
      shape->second.messages += calls * messages;
      shape->second.collectives += calls * (1 - messages);
    }
  }
  std::vector<CommunicatorShape> list;
  for (auto& [id, shape] : shapes) {
    const double divisor = std::max(1, members[id]);
    shape.collectives /= divisor;
    shape.messages /= divisor;
    shape.bytes /= divisor;
    list.push_back(std::move(shape));
  }
  return list;
}

diagnose::Suspicion suspicionByPeers(const JobView& job, std::size_t window, double leastShare) {
  std::vector<instrument::RankNow> ranks;
  for (const auto& [process, member] : job.members()) {
    const RankMeans means = JobView::means(member, window);
    if (means.iterations == 0) continue;
    instrument::RankNow& rank = ranks.emplace_back();
    rank.rank = member.identity.jobRank;
    const double usual = job.members().begin()->second.healthy ? job.members().begin()->second.healthy->microBatches
                                                               : means.microBatches;
    rank.profile.own = ownTimeAt(usual, means);
    rank.profile.inLibrary = means.duration - means.outside;
    for (const auto& [id, seconds] : means.inLibrary) rank.profile.communicators.push_back({id, seconds});
  }
  // Ranks that share a number cannot be told apart.
  std::set<Rank> distinct;
  for (const auto& each : ranks) distinct.insert(each.rank);
  if (distinct.size() != ranks.size() || distinct.contains(-1)) return {};
  // Communication from 1.1 times the median on. Source: Falcon, arXiv 2410.12588, section 4.3.
  return diagnose::suspect(
      {.ranks = instrument::besidePeers(ranks, shapesOf(job)), .communicators = communicatorMembers(job)},
      {.leastOfGroup = 1.1, .leastShare = leastShare});
}

diagnose::Suspicion inBoth(const diagnose::Suspicion& one, const diagnose::Suspicion& other) {
  diagnose::Suspicion both = one;
  const auto keep = [](auto& mine, const auto& others, auto key) {
    std::erase_if(mine, [&](const auto& each) {
      return std::none_of(others.begin(), others.end(), [&](const auto& twin) { return twin.*key == each.*key; });
    });
  };
  keep(both.ranks, other.ranks, &diagnose::RankSuspect::rank);
  keep(both.groups, other.groups, &diagnose::GroupSuspect::communicator);
  return both;
}

double usePeers(const diagnose::Suspicion& suspicion, JobView& job) {
  double saved = 0;
  for (auto& [process, member] : job.members()) {
    member.healthyCalls.clear();  // of the slow start: the chain of waiting was as it is
    if (!member.healthy) continue;
    RankMeans& healthy = *member.healthy;
    for (const auto& suspect : suspicion.ranks) {
      if (suspect.rank != member.identity.jobRank || suspect.growth <= 1) continue;
      saved = std::max(saved, healthy.outside * (1 - 1 / suspect.growth));
      healthy.outside /= suspect.growth;
      healthy.outsidePerMicroBatch /= suspect.growth;
      healthy.ranges.clear();
    }
  }
  for (const auto& suspect : suspicion.groups) {
    if (suspect.growth <= 1) continue;
    double least = std::numeric_limits<double>::infinity();
    for (auto& [process, member] : job.members()) {
      if (!member.healthy) continue;
      const auto inside = member.healthy->inLibrary.find(suspect.communicator);
      if (inside == member.healthy->inLibrary.end()) continue;
      least = std::min(least, inside->second);
      inside->second /= suspect.growth;
      std::erase_if(member.healthyTransfers.sums, [&](const auto& sum) { return sum.id == suspect.communicator; });
    }
    if (std::isfinite(least)) saved = std::max(saved, least * (1 - 1 / suspect.growth));
  }
  for (auto& [process, member] : job.members())
    if (member.healthy) member.healthy->duration = std::max(member.healthy->duration - saved, 0.0);
  return saved;
}

}  // namespace falcon::control
