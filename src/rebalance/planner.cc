#include "rebalance/planner.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "base/format.h"
#include "instrument/communicator_names.h"
#include "rebalance/micro_batch_split.h"
#include "rebalance/node_order.h"
#include "topology/ring_avoiding.h"
#include "topology/ring_order.h"

namespace falcon::rebalance {
namespace {

/// A ring order that takes less than this share of its bytes off a slow link does not relieve it: half of the bytes
/// stay slow by a factor that is then only halved.
constexpr double leastTaken = 0.5;
// Of the bytes that slow links carry in health: whose are fewer, such as the sums of a few numbers, is not held up.
constexpr double littleOfLink = 0.02;

std::string listOf(std::span<const int> values, const char* separator) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : separator) + std::to_string(value);
  return text;
}

std::vector<int> splitNow(const JobFacts& job) {
  if (!job.microBatchesNow.empty()) return job.microBatchesNow;
  return equalSplit(job.layout->dataSize, job.microBatches, job.limits.multiple);
}

std::vector<Replica> replicasOf(const JobFacts& job, std::span<const int> now) {
  std::vector<Replica> replicas;
  const auto limit = [](std::span<const int> limits, std::size_t i, int none) {
    return i < limits.size() && limits[i] > 0 ? limits[i] : none;
  };
  for (std::size_t i = 0; i < job.secondsPerMicroBatch.size(); ++i)
    replicas.push_back({.secondsPerMicroBatch = job.secondsPerMicroBatch[i],
                        .fillSeconds = i < job.fillSeconds.size() ? job.fillSeconds[i] : 0,
                        .now = i < now.size() ? now[i] : 0,
                        .least = limit(job.limits.least, i, 1),
                        .most = limit(job.limits.most, i, std::numeric_limits<int>::max())});
  return replicas;
}

Plan advice(std::string reason) {
  Plan plan;
  plan.kind = PlanKind::advise;
  plan.reason = std::move(reason);
  return plan;
}

bool anyIs(CulpritKind kind, std::span<const Culprit> culprits) {
  return std::any_of(culprits.begin(), culprits.end(), [&](const Culprit& each) { return each.kind == kind; });
}

/// The slow ranks, and of each slow link the end that touches the most of them: one is enough.
std::vector<Rank> whomToLeaveOut(std::span<const Culprit> culprits) {
  const auto ranks = slowRanksOf(culprits);
  std::set<Rank> out(ranks.begin(), ranks.end());
  std::map<Rank, int> linksOf;
  for (const Culprit& culprit : culprits)
    if (culprit.kind == CulpritKind::link) ++linksOf[culprit.link.from], ++linksOf[culprit.link.to];
  for (const Culprit& culprit : culprits) {
    const auto [from, to] = culprit.link;
    if (culprit.kind != CulpritKind::link || out.contains(from) || out.contains(to)) continue;
    out.insert(linksOf[to] > linksOf[from] ? to : from);
  }
  return {out.begin(), out.end()};
}

/// Nothing else helps: from a checkpoint, where the framework takes part, without the slow ones' places.
Plan restartWithout(const JobFacts& job, std::span<const Culprit> culprits, const std::string& who) {
  Plan plan;
  plan.kind = PlanKind::restart;
  plan.leaveOut = whomToLeaveOut(culprits);
  plan.priceSeconds = *job.restartSeconds;
  plan.reason = fmt::format("{}, and nothing else helps: from a checkpoint, without {}", who,
                            plan.leaveOut.size() == 1 ? "its place" : "the places of " + listOf(plan.leaveOut, ", "));
  return plan;
}

/// As what is to be done about it: by an exchange of roles, where ranks can have others, else in words alone.
void carryOut(const JobFacts& job, const NodePermutation& order, Plan& plan) {
  if (!job.swapSeconds || job.deterministic) return;
  plan.kind = PlanKind::swap;
  plan.priceSeconds = *job.swapSeconds;
  plan.roles = rolesAfter(job, order);
}

std::string moveInWords(const JobFacts& job, const NodePermutation& order, const Plan& plan) {
  return plan.roles.empty() ? inWords(order) : inWords(job.roles, plan.roles);
}

/// Slow ranks in fewer, inner stages.
struct Packing {
  std::optional<Plan> plan;  ///< nothing: no order of the nodes makes computing clearly faster
  std::string obstacle;      ///< then, as in NodeOrder
};
/// Nothing where there is a slow link: links have a plan of their own, which tells whether theirs is the better remedy.
Packing packed(const JobFacts& job, std::span<const Culprit> culprits, const std::string& why) {
  if (anyIs(CulpritKind::link, culprits)) return {};
  auto [order, obstacle] = nodeOrderFor(job, culprits);
  if (!order || order->after.seconds >= order->before.seconds * (1 - leastGain)) return {{}, std::move(obstacle)};
  Plan plan = advice("");
  carryOut(job, *order, plan);
  plan.reason = fmt::format(
      "{}; {}: an iteration's computing takes {:.2f} of what it does now, slow ranks are in {} of {} stages", why,
      moveInWords(job, *order, plan), order->after.seconds / order->before.seconds, order->after.slowStages,
      job.layout->pipelineSize);
  plan.gain = 1 - order->after.seconds / order->before.seconds;
  plan.permutation = std::move(order);
  return {std::move(plan), {}};
}

/// No work can be moved away from the slow ranks: their nodes can, or they have to go.
Plan withoutSplit(const JobFacts& job, std::span<const Culprit> culprits, const std::string& obstacle,
                  const char* elseAdvised) {
  std::string who = fmt::format("rank {} is slow", slowRanksOf(culprits).front());
  Packing packing = packed(job, culprits, who + obstacle);
  const std::string lacking = packing.obstacle.empty() ? "" : "; " + packing.obstacle;
  // What can be carried out goes before what can only be said.
  if (!(packing.plan && job.swapSeconds) && job.restartSeconds) return restartWithout(job, culprits, who + lacking);
  if (packing.plan) return std::move(*packing.plan);
  return advice(fmt::format("{}{}{}{}", who, obstacle, lacking, elseAdvised));
}

Plan planForRank(const JobFacts& job, std::span<const Culprit> culprits) {
  const Rank slow = slowRanksOf(culprits).front();
  if (!job.layout || job.layout->dataSize < 2 || job.microBatches == 0)
    return withoutSplit(job, culprits, ", and no data-parallel layout is registered to move its work within",
                        ": replace it at a checkpoint");
  if (job.deterministic)
    return withoutSplit(job, culprits, "; NCCL_FALCON_DETERMINISTIC=1 forbids to split the micro-batches anew", "");
  if (job.limits.evenOnly)
    return withoutSplit(job, culprits,
                        ", and expert groups span the replicas: they must have equally many micro-batches",
                        ": replace it at a checkpoint");
  if (job.secondsPerMicroBatch.size() != static_cast<std::size_t>(job.layout->dataSize))
    return advice(fmt::format("rank {} is slow; how long the replicas compute is not known", slow));
  const auto now = splitNow(job);
  const auto replicas = replicasOf(job, now);
  const auto split = splitMicroBatches(replicas, {.total = job.microBatches, .multiple = job.limits.multiple});
  if (!split) return withoutSplit(job, culprits, "; " + split.error().message(), "");

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

/// What the group sends over its slow links in health, bytes an iteration; 0: nothing was seen.
double usualOver(const CommunicatorFacts& communicator, std::span<const Link> slow) {
  double bytes = 0;
  for (const Link& link : slow)
    if (const auto seen = communicator.usual.find(link); seen != communicator.usual.end()) bytes += seen->second;
  return bytes;
}

/// What is left for links that cannot be avoided: other places for their nodes, or a restart. In words, after what
/// stands in the way.
/// @param lacking  gets what else stands in the way, as in NodeOrder
std::string withoutReroute(const JobFacts& job, std::span<const Culprit> culprits, Plan& plan, std::string& lacking) {
  if (!job.layout || job.nodeOfPlace.size() != static_cast<std::size_t>(job.layout->size()))
    return "replace it at a checkpoint";
  std::vector<Culprit> links;
  for (const Culprit& culprit : culprits)
    if (culprit.kind == CulpritKind::link) links.push_back(culprit);
  NodeOrder found = nodeOrderFor(job, links);
  plan.permutation = std::move(found.order);
  lacking = std::move(found.obstacle);
  if (!lacking.empty()) return lacking + ": replace it at a checkpoint";
  if (!plan.permutation) return "no swap of two nodes relieves the link: replace it at a checkpoint";
  const NodePermutation& order = *plan.permutation;
  carryOut(job, order, plan);
  plan.gain = 1 - order.slowBytesAfter / order.slowBytesBefore;
  return fmt::format("{}: the link then carries {:.0f} % of what it does now", moveInWords(job, order, plan),
                     100 * order.slowBytesAfter / order.slowBytesBefore);
}

/// In both directions where both are slow.
std::vector<Link> slowLinksOf(std::span<const Culprit> culprits) {
  std::vector<Link> links;
  for (const Culprit& culprit : culprits) {
    if (culprit.kind != CulpritKind::link) continue;
    links.push_back(culprit.link);
    if (culprit.bothWays) links.push_back({culprit.link.to, culprit.link.from});
  }
  return links;
}

std::vector<Plan> plansForLinks(const JobFacts& job, std::span<const Culprit> culprits) {
  Plan reroute, blocked;
  bool isAvoided = false, isLittleLeft = false;
  std::string obstacles;
  struct Concerned {
    const CommunicatorFacts& communicator;
    std::vector<Link> slow;
    double usual;
  };
  std::vector<Concerned> all;
  double usualOfAll = 0;
  for (const CommunicatorFacts& communicator : job.communicators) {
    auto slow = slowLinksIn(job, communicator, culprits);
    if (slow.empty()) continue;
    const double usual = usualOver(communicator, slow);
    usualOfAll += usual;
    all.push_back({communicator, std::move(slow), usual});
  }
  for (const auto& [communicator, slow, usual] : all) {
    if (usual > 0 && usual < littleOfLink * usualOfAll) {
      isLittleLeft = true;
      continue;
    }
    if (anyOf(communicator.pointToPoint, slow))
      obstacles += fmt::format("{}{} sends directly over it", obstacles.empty() ? "" : ", ", nameOf(communicator));
    if (!communicator.ringCollectives) continue;
    if (!anyOf(topology::ringLinks(communicator.ring), slow)) {
      isAvoided = isAvoided || anyOf(topology::ringLinks(communicator.firstRing), slow);
      continue;
    }
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
    blocked.kind = PlanKind::advise;
    std::string lacking;
    const std::string what = withoutReroute(job, culprits, blocked, lacking);
    const std::string who = fmt::format("{} is slow and cannot be avoided: {}", names, obstacles);
    blocked.reason = who + "; " + what;
    if (blocked.kind != PlanKind::swap && job.restartSeconds)
      blocked = restartWithout(job, culprits, who + (lacking.empty() ? "" : "; " + lacking));
    // What the ring leaves on the link is little mostly, such as the sums of a few numbers.
    const bool isRemedy = blocked.kind == PlanKind::swap || blocked.kind == PlanKind::restart;
    blocked.ifTooLittle = isRemedy && (isAvoided || !plans.empty());
    plans.push_back(std::move(blocked));
  }
  if (plans.empty()) {
    Plan none;
    none.reason = isLittleLeft ? fmt::format("{} is slow, but what goes over it now is little", names)
                               : fmt::format("{} is slow, but no ring or send uses it", names);
    plans.push_back(std::move(none));
  }
  return plans;
}

}  // namespace

std::vector<Plan> plansFor(const JobFacts& job, std::span<const Culprit> culprits) {
  std::vector<Plan> plans;
  // One split serves all slow ranks: it comes from the replicas' times.
  if (anyIs(CulpritKind::rank, culprits)) {
    plans.push_back(planForRank(job, culprits));
    // A split gives a slow rank less to do and leaves it where all wait for it.
    const bool isSplit = plans.back().kind == PlanKind::splitMicroBatches || plans.back().kind == PlanKind::none;
    constexpr const char* why = "a split helps too little";
    Packing further = isSplit && job.swapSeconds ? packed(job, culprits, why) : Packing();
    if (!further.obstacle.empty()) further.plan = advice(fmt::format("{}; {}", why, further.obstacle));
    if (further.plan) {
      further.plan->ifTooLittle = true;
      plans.push_back(std::move(*further.plan));
    }
    for (Plan& plan : plans) plan.against = CulpritKind::rank;
  }
  if (anyIs(CulpritKind::link, culprits))
    for (Plan& plan : plansForLinks(job, culprits))
      plans.push_back(std::move(plan)), plans.back().against = CulpritKind::link;
  for (Plan& plan : plans)
    if (!plan.roles.empty()) plan.avoid = slowLinksOf(culprits);
  // One restart serves all causes together.
  const auto isRestart = [](const Plan& plan) { return plan.kind == PlanKind::restart; };
  const auto first = std::find_if(plans.begin(), plans.end(), isRestart);
  if (first != plans.end()) {
    plans.erase(std::remove_if(std::next(first), plans.end(), isRestart), plans.end());
  } else if (job.restartSeconds && !plans.empty() && !whomToLeaveOut(culprits).empty()) {
    const CulpritKind against = plans.front().against;
    plans.push_back(restartWithout(job, culprits, "what was done helps too little"));
    plans.back().ifTooLittle = true;
    plans.back().against = against;
  }
  return plans;
}

std::vector<Plan> undoFor(const JobFacts& job, std::span<const Culprit> culprits) {
  std::vector<Plan> plans;
  if (job.layout && !job.microBatchesNow.empty() && !anyIs(CulpritKind::rank, culprits)) {
    const auto equal = equalSplit(job.layout->dataSize, job.microBatches, job.limits.multiple);
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
  std::vector<int> own = job.firstRoles;
  if (own.size() != job.roles.size()) {
    own.resize(job.roles.size());
    std::iota(own.begin(), own.end(), 0);
  }
  if (culprits.empty() && job.roles != own) {
    Plan plan;
    plan.kind = PlanKind::swap;
    plan.against = CulpritKind::link;
    plan.reason = "nobody is slow any more: every rank has its first role again";
    if (const std::string lack = lackOfMemory(job, own); !lack.empty()) {
      plan.kind = PlanKind::advise;
      plan.reason = fmt::format(
          "nobody is slow any more, but memory is too little for every rank's first role: {}; the roles stay", lack);
    } else {
      plan.roles = std::move(own);
    }
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
