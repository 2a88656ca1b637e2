#include "rebalance/planner.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "instrument/communicator_names.h"
#include "rebalance/micro_batch_split.h"
#include "topology/ring_avoiding.h"
#include "topology/ring_order.h"

namespace falcon::rebalance {
namespace {

/// Moving work for less than this share of the computing time is not worth other shapes and sums.
constexpr double leastGain = 0.03;
/// A ring order that takes less than this share of its bytes off a slow link does not relieve it: half of the bytes
/// stay slow by a factor that is then only halved.
constexpr double leastTaken = 0.5;

std::string listOf(std::span<const int> values, const char* separator) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : separator) + std::to_string(value);
  return text;
}

std::vector<int> splitNow(const JobFacts& job) {
  if (!job.microBatchesNow.empty()) return job.microBatchesNow;
  return equalSplit(job.layout->dataSize, job.microBatches);
}

/// Their pipelines fill alike as far as anybody knows, which changes no split.
std::vector<Replica> replicasOf(const JobFacts& job, std::span<const int> now) {
  std::vector<Replica> replicas;
  for (std::size_t i = 0; i < job.secondsPerMicroBatch.size(); ++i)
    replicas.push_back({.secondsPerMicroBatch = job.secondsPerMicroBatch[i], .now = i < now.size() ? now[i] : 0});
  return replicas;
}

Plan advice(std::string reason) {
  Plan plan;
  plan.kind = PlanKind::advise;
  plan.reason = std::move(reason);
  return plan;
}

/// Nothing else helps: from a checkpoint, where the framework takes part, without the slow one's place.
Plan restartWithout(const JobFacts& job, Rank slow) {
  Plan plan;
  plan.kind = PlanKind::restart;
  plan.leaveOut = {slow};
  plan.priceSeconds = *job.restartSeconds;
  plan.reason = fmt::format("rank {} is slow, and nothing else helps: from a checkpoint, without its place", slow);
  return plan;
}

Plan planForRank(const JobFacts& job, Rank slow) {
  const bool canMoveWork = job.layout && job.layout->dataSize >= 2 && job.microBatches != 0;
  if (!canMoveWork && job.restartSeconds) return restartWithout(job, slow);
  if (!canMoveWork)
    return advice(
        fmt::format("rank {} is slow, and no data-parallel layout is registered to move its work within: "
                    "replace it at a checkpoint",
                    slow));
  if (job.deterministic)
    return advice(
        fmt::format("rank {} is slow; NCCL_FALCON_DETERMINISTIC=1 forbids to split the micro-batches anew", slow));
  if (job.secondsPerMicroBatch.size() != static_cast<std::size_t>(job.layout->dataSize))
    return advice(fmt::format("rank {} is slow; how long the replicas compute is not known", slow));
  const auto now = splitNow(job);
  const auto replicas = replicasOf(job, now);
  const auto split = splitMicroBatches(replicas, {.total = job.microBatches});
  if (!split) return advice(fmt::format("rank {} is slow; {}", slow, split.error().message()));

  const double before = makespan(replicas, now), after = makespan(replicas, *split);
  Plan plan;
  plan.gain = 1 - after / before;
  if (plan.gain < leastGain) {
    plan.reason = fmt::format("rank {} is slow, but no split of {} micro-batches is better than the one in force", slow,
                              job.microBatches);
    return plan;
  }
  plan.kind = PlanKind::splitMicroBatches;
  plan.microBatches = *split;
  plan.reason = fmt::format("micro-batches split {} over the replicas: computing takes {:.2f} s instead of {:.2f} s",
                            listOf(*split, "+"), after, before);
  return plan;
}

/// The slow links between members, as ranks of the communicator: between those that a culprit names, and between all
/// that have the addresses of its ends.
std::vector<Link> slowLinksIn(const JobFacts& job, const CommunicatorFacts& communicator,
                              std::span<const Culprit> culprits) {
  const auto addressOf = [&](Rank jobRank) {
    const auto found = job.addresses.find(jobRank);
    return found == job.addresses.end() ? std::string() : found->second;
  };
  const auto membersAt = [&](Rank jobRank, bool byAddress) {
    std::vector<Rank> ranks;
    for (Rank rank = 0; rank < static_cast<Rank>(communicator.members.size()); ++rank) {
      const Rank member = communicator.members[static_cast<std::size_t>(rank)];
      if (member == jobRank || (byAddress && addressOf(member) == addressOf(jobRank))) ranks.push_back(rank);
    }
    return ranks;
  };
  std::vector<Link> slow;
  for (const Culprit& culprit : culprits) {
    if (culprit.kind != CulpritKind::link) continue;
    const std::string from = addressOf(culprit.link.from), to = addressOf(culprit.link.to);
    const bool byAddress = !from.empty() && !to.empty() && from != to;
    for (const Rank sender : membersAt(culprit.link.from, byAddress))
      for (const Rank receiver : membersAt(culprit.link.to, byAddress)) {
        slow.push_back({sender, receiver});
        if (culprit.bothWays) slow.push_back({receiver, sender});
      }
  }
  return slow;
}

std::string nameOf(const CommunicatorFacts& communicator) {
  return communicator.name.empty() ? instrument::CommunicatorNames().nameOf(communicator.id) : communicator.name;
}

bool anyOf(std::span<const Link> links, std::span<const Link> slow) {
  return std::any_of(links.begin(), links.end(),
                     [&](const Link& link) { return std::find(slow.begin(), slow.end(), link) != slow.end(); });
}

/// How much of what the group sends over its slow links goes round the ring, and can be taken elsewhere.
struct Taken {
  double share = 1;      ///< 0 to 1; 1 where nothing was seen
  std::string ofWhat{};  ///< in words, where it is not all
};
Taken takenByRing(const CommunicatorFacts& communicator, std::span<const Link> slow) {
  Carried over;
  for (const Link& link : slow)
    if (const auto seen = communicator.carried.find(link); seen != communicator.carried.end()) {
      over.all += seen->second.all;
      over.aroundRing += seen->second.aroundRing;
    }
  if (over.all <= 0) return {};
  Taken taken{.share = over.aroundRing / over.all};
  if (taken.share < 1 - leastGain)
    taken.ofWhat =
        fmt::format("{:.0f} % of the bytes of {} there go round the ring", 100 * taken.share, nameOf(communicator));
  return taken;
}

/// The roles when two nodes exchange their ranks' places, one by one.
std::vector<int> rolesAfter(const JobFacts& job, const NodeSwap& swap) {
  std::vector<int> roles = job.roles;
  std::vector<Rank> ranks[2];
  for (std::size_t place = 0; place < job.nodeOfPlace.size(); ++place) {
    if (job.nodeOfPlace[place] == swap.first) ranks[0].push_back(job.rankAt[place]);
    if (job.nodeOfPlace[place] == swap.second) ranks[1].push_back(job.rankAt[place]);
  }
  for (std::size_t i = 0; i < std::min(ranks[0].size(), ranks[1].size()); ++i)
    std::swap(roles[static_cast<std::size_t>(ranks[0][i])], roles[static_cast<std::size_t>(ranks[1][i])]);
  return roles;
}

/// "ranks 0 and 1, 2 and 3 exchange their roles".
std::string exchangeText(std::span<const int> before, std::span<const int> after) {
  std::string text;
  for (std::size_t rank = 0; rank < before.size(); ++rank)
    for (std::size_t other = rank + 1; other < before.size(); ++other)
      if (after[rank] == before[other] && after[rank] != before[rank])
        text += fmt::format("{}{} and {}", text.empty() ? "" : ", ", rank, other);
  return "ranks " + text + " exchange their roles";
}

/// Nodes to swap, into the plan, where that relieves a link; and what is to be done about it, in words.
std::string swapAdvice(const JobFacts& job, std::span<const Culprit> culprits, Plan& plan) {
  if (!job.layout || job.nodeOfPlace.size() != static_cast<std::size_t>(job.layout->size()))
    return "replace it at a checkpoint";
  const auto nodeOf = [&](Rank rank) {
    const auto place = std::find(job.rankAt.begin(), job.rankAt.end(), rank);
    return place == job.rankAt.end() ? -1 : job.nodeOfPlace[static_cast<std::size_t>(place - job.rankAt.begin())];
  };
  for (const Culprit& culprit : culprits) {
    if (culprit.kind != CulpritKind::link) continue;
    const Link nodes{nodeOf(culprit.link.from), nodeOf(culprit.link.to)};
    plan.swap = swapForLink(*job.layout, job.nodeOfPlace, nodes, culprit.bothWays, job.volumes);
    if (!plan.swap) continue;
    if (!job.roles.empty() && !job.deterministic) {
      plan.kind = PlanKind::swap;
      plan.roles = rolesAfter(job, *plan.swap);
      plan.priceSeconds = job.swapSeconds;
      return fmt::format("{}: the link then carries {:.0f} % of what it does now", exchangeText(job.roles, plan.roles),
                         100 * plan.swap->bytesAfter / plan.swap->bytesBefore);
    }
    return fmt::format("swap nodes {} and {}: the link then carries {:.0f} % of what it does now", plan.swap->first,
                       plan.swap->second, 100 * plan.swap->bytesAfter / plan.swap->bytesBefore);
  }
  return "no swap of two nodes relieves the link: replace it at a checkpoint";
}

std::vector<Plan> plansForLinks(const JobFacts& job, std::span<const Culprit> culprits) {
  Plan reroute, blocked;
  std::string obstacles;
  for (const CommunicatorFacts& communicator : job.communicators) {
    const auto slow = slowLinksIn(job, communicator, culprits);
    if (slow.empty()) continue;
    if (anyOf(communicator.pointToPoint, slow))
      obstacles += fmt::format("{}{} sends directly over it", obstacles.empty() ? "" : ", ", nameOf(communicator));
    if (!communicator.ringCollectives || !anyOf(topology::ringLinks(communicator.ring), slow)) continue;
    const auto around = topology::ringAvoiding(communicator.ring, slow, communicator.nodes);
    const Taken taken = takenByRing(communicator, slow);
    if (taken.share < leastTaken) {
      obstacles += fmt::format("{}only {}, the others straight to who receives them", obstacles.empty() ? "" : ", ",
                               taken.ofWhat);
    } else if (!around) {
      obstacles += fmt::format("{}{} has no other ring over its {} ranks", obstacles.empty() ? "" : ", ",
                               nameOf(communicator), communicator.members.size());
    } else if (job.deterministic) {
      obstacles += fmt::format("{}NCCL_FALCON_DETERMINISTIC=1 forbids another ring in {}",
                               obstacles.empty() ? "" : ", ", nameOf(communicator));
    } else {
      reroute.rings.push_back({communicator.id, 0, *around, communicator.ring});
      std::vector<Rank> members;
      for (const Rank rank : *around) members.push_back(communicator.members[static_cast<std::size_t>(rank)]);
      reroute.reason += (reroute.reason.empty() ? "ring " : ", ring ") + listOf(members, "-");
      if (!taken.ofWhat.empty()) reroute.reason += " (" + taken.ofWhat + ")";
    }
  }
  std::string names;
  for (const Culprit& culprit : culprits)
    if (culprit.kind == CulpritKind::link) names += (names.empty() ? "" : ", ") + nameOf(culprit);

  std::vector<Plan> plans;
  if (!reroute.rings.empty()) {
    reroute.kind = PlanKind::reroute;
    reroute.reason =
        fmt::format("around {}: {}; the order of float sums changes, alike on all ranks", names, reroute.reason);
    plans.push_back(std::move(reroute));
  }
  if (!obstacles.empty()) {
    blocked.kind = PlanKind::advise;  // unless it can be done
    const std::string what = swapAdvice(job, culprits, blocked);
    blocked.reason = fmt::format("{} is slow and cannot be avoided: {}; {}", names, obstacles, what);
    plans.push_back(std::move(blocked));
  }
  if (plans.empty()) {
    Plan none;
    none.reason = fmt::format("{} is slow, but no ring or send uses it", names);
    plans.push_back(std::move(none));
  }
  return plans;
}

}  // namespace

std::vector<Plan> plansFor(const JobFacts& job, std::span<const Culprit> culprits) {
  std::vector<Plan> plans;
  const auto isRank = [](const Culprit& culprit) { return culprit.kind == CulpritKind::rank; };
  const auto isLink = [](const Culprit& culprit) { return culprit.kind == CulpritKind::link; };
  // One split serves all slow ranks: it comes from the replicas' times.
  if (const auto slow = std::find_if(culprits.begin(), culprits.end(), isRank); slow != culprits.end())
    plans.push_back(planForRank(job, slow->rank)), plans.back().against = CulpritKind::rank;
  if (std::any_of(culprits.begin(), culprits.end(), isLink))
    for (Plan& plan : plansForLinks(job, culprits))
      plans.push_back(std::move(plan)), plans.back().against = CulpritKind::link;
  return plans;
}

std::vector<Plan> undoFor(const JobFacts& job, std::span<const Culprit> culprits) {
  std::vector<Plan> plans;
  const bool anyRank = std::any_of(culprits.begin(), culprits.end(),
                                   [](const Culprit& culprit) { return culprit.kind == CulpritKind::rank; });
  if (job.layout && !job.microBatchesNow.empty() && !anyRank) {
    const auto equal = equalSplit(job.layout->dataSize, job.microBatches);
    if (job.microBatchesNow != equal) {
      Plan plan;
      plan.kind = PlanKind::splitMicroBatches;
      plan.against = CulpritKind::rank;
      plan.microBatches = equal;
      plan.reason =
          fmt::format("no rank is slow any more: micro-batches split {} over the replicas again", listOf(equal, "+"));
      plans.push_back(std::move(plan));
    }
  }
  const bool anyLink = std::any_of(culprits.begin(), culprits.end(),
                                   [](const Culprit& culprit) { return culprit.kind == CulpritKind::link; });
  std::vector<int> own(job.roles.size());
  std::iota(own.begin(), own.end(), 0);
  if (!anyLink && job.roles != own) {
    Plan plan;
    plan.kind = PlanKind::swap;
    plan.against = CulpritKind::link;
    plan.roles = std::move(own);
    plan.reason = "no link is slow any more: every rank has its first role again";
    plans.push_back(std::move(plan));
  }
  Plan rings;
  for (const CommunicatorFacts& communicator : job.communicators) {
    const auto slow = slowLinksIn(job, communicator, culprits);
    // Back to the first order or not at all: a shorter detour is not worth holding the job for a moment.
    const bool detour = communicator.ring != communicator.firstRing;
    if (!detour || anyOf(topology::ringLinks(communicator.firstRing), slow)) continue;
    rings.rings.push_back({communicator.id, 0, communicator.firstRing, communicator.ring});
  }
  if (!rings.rings.empty()) {
    rings.kind = PlanKind::reroute;
    rings.against = CulpritKind::link;
    rings.reason =
        fmt::format("{} ring{} in the first order again", rings.rings.size(), rings.rings.size() == 1 ? "" : "s");
    plans.push_back(std::move(rings));
  }
  return plans;
}

}  // namespace falcon::rebalance
