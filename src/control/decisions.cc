#include "control/decisions.h"

#include <algorithm>
#include <cmath>

#include "rebalance/micro_batch_split.h"
#include "topology/ring_avoiding.h"

namespace falcon::control {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double growthOf(const MemberView& member, std::size_t window) {
  if (!member.healthy || member.healthy->outsidePerMicroBatch <= 0) return 1;
  const RankMeans now = JobView::means(member, window);
  return now.iterations == 0 ? 1 : now.outsidePerMicroBatch / member.healthy->outsidePerMicroBatch;
}

std::string ranksText(const std::vector<Rank>& ranks) {
  std::string text;
  for (const Rank rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

std::string splitText(const std::vector<int>& split) {
  std::string text;
  for (const int each : split) text += (text.empty() ? "" : "+") + std::to_string(each);
  return text;
}

}  // namespace

double ownTimeGrowth(const JobView& job, ProcessId process, std::size_t window) {
  std::vector<double> growths;
  for (const auto& [id, member] : job.members()) growths.push_back(growthOf(member, window));
  const double usual = median(growths);
  const auto member = job.members().find(process);
  return member == job.members().end() || usual <= 0 ? 1 : growthOf(member->second, window) / usual;
}

// A rank that computes more slowly than before, beyond what all ranks do, is suspected itself. A communicator whose
// fastest member now spends longer inside the library for it than before is slow itself: its last member waits for
// nobody, what it spends there is the communication.
Suspects suspect(const JobView& job, std::size_t window) {
  Suspects suspects;
  double worst = 1;
  for (const auto& [process, member] : job.members()) {
    const double growth = ownTimeGrowth(job, process, window);
    if (growth > 1.2 && growthOf(member, window) > 1.2) suspects.ranks.push_back(member.identity.jobRank);
    worst = std::max(worst, growth);
  }
  std::string groupsText;
  for (const auto& [id, communicator] : job.communicators()) {
    double now = INFINITY, before = INFINITY, duration = 0;
    for (const Rank rank : communicator.jobRanks) {
      const auto process = job.processOf(rank);
      if (!process) continue;
      const MemberView& member = job.members().at(*process);
      if (!member.healthy) continue;
      const RankMeans means = JobView::means(member, window);
      const auto spent = means.inLibrary.find(id);
      const auto spentBefore = member.healthy->inLibrary.find(id);
      if (spent == means.inLibrary.end() || spentBefore == member.healthy->inLibrary.end()) continue;
      now = std::min(now, spent->second);
      before = std::min(before, spentBefore->second);
      duration = std::max(duration, member.healthy->duration);
    }
    // At least a twentieth of an iteration: tiny collectives double for no reason.
    if (!std::isfinite(now) || now < 1.3 * before || now - before < 0.05 * duration) continue;
    if (communicator.jobRanks.size() == job.members().size() && job.communicators().size() > 1) continue;
    suspects.groups.push_back(id);
    groupsText += fmt::format("{}[{}] {:.0f} -> {:.0f} ms", groupsText.empty() ? "" : ", ",
                              ranksText(communicator.jobRanks), before * 1e3, now * 1e3);
  }
  suspects.reason =
      suspects.ranks.empty()
          ? ""
          : fmt::format("rank {} computes up to {:.2f}x longer than the others do against their baselines",
                        ranksText(suspects.ranks), worst);
  if (!groupsText.empty())
    suspects.reason += (suspects.reason.empty() ? "" : "; ") + std::string("communication grew in ") + groupsText;
  if (suspects.empty())
    suspects.reason = fmt::format("own times grew by at most {:.2f}x, and no group's communication did", worst);
  return suspects;
}

std::optional<Rank> communicatorRank(const CommunicatorFormed& communicator, Rank jobRank) {
  const auto found = std::find(communicator.jobRanks.begin(), communicator.jobRanks.end(), jobRank);
  if (found == communicator.jobRanks.end()) return std::nullopt;
  return static_cast<Rank>(found - communicator.jobRanks.begin());
}

namespace {

// Seconds a micro-batch of every replica: its slowest member's.
std::vector<double> secondsByReplica(const JobView& job, int replicas, std::size_t window) {
  std::vector<double> perReplica(static_cast<std::size_t>(replicas), 0);
  for (const auto& [process, member] : job.members()) {
    if (!member.layout || member.layout->dataParallelIndex >= replicas) continue;
    double& slowest = perReplica[static_cast<std::size_t>(member.layout->dataParallelIndex)];
    slowest = std::max(slowest, JobView::means(member, window).outsidePerMicroBatch);
  }
  return perReplica;
}

Remedy splitFor(const JobView& job, Rank slow, std::size_t window) {
  const auto process = job.processOf(slow);
  const auto& layout = process ? job.members().at(*process).layout : std::optional<LayoutKnown>();
  if (!layout || layout->dataParallelSize < 2)
    return {.kind = Remedy::Kind::advise,
            .text = fmt::format("rank {} is slow; the framework registered no data-parallel layout, so its work cannot "
                                "be moved: replace it at the next checkpoint",
                                slow)};
  const auto perReplica = secondsByReplica(job, layout->dataParallelSize, window);
  const auto split = rebalance::splitMicroBatches(perReplica, layout->microBatches);
  if (!split)
    return {.kind = Remedy::Kind::advise, .text = "micro-batches cannot be split anew: " + split.error().message()};
  return {.kind = Remedy::Kind::splitMicroBatches,
          .microBatches = *split,
          .text = "micro-batches are split " + splitText(*split) + " over the replicas"};
}

Remedy routeAround(const JobView& job, const Culprit& culprit, bool deterministic) {
  Remedy remedy;
  for (const auto& [id, communicator] : job.communicators()) {
    const auto from = communicatorRank(communicator, culprit.link.from);
    const auto to = communicatorRank(communicator, culprit.link.to);
    if (!from || !to || !communicator.hostEngine || communicator.jobRanks.size() == job.members().size()) continue;
    std::vector<Link> slow = {{*from, *to}};
    if (culprit.bothWays) slow.push_back({*to, *from});
    const auto around = topology::ringAvoiding(communicator.ring, slow);
    if (!around || *around == communicator.ring) continue;
    remedy.rings.push_back({id, 0, *around, communicator.ring});
    std::vector<Rank> shown;
    for (const Rank rank : *around) shown.push_back(communicator.jobRanks[static_cast<std::size_t>(rank)]);
    remedy.text += (remedy.text.empty() ? "ring " : ", ring ") + ranksText(shown);
  }
  if (remedy.rings.empty())
    return {.kind = Remedy::Kind::advise,
            .text = nameOf(culprit) + " is slow and no ring can go around it: swap its nodes at the next checkpoint"};
  remedy.text = "re-routed around " + nameOf(culprit) + ": " + remedy.text +
                " (the order of float sums changes, all ranks agree)";
  remedy.kind = deterministic ? Remedy::Kind::advise : Remedy::Kind::reroute;
  if (deterministic) remedy.text = "NCCL_FALCON_DETERMINISTIC=1 forbids what would help: " + remedy.text;
  return remedy;
}

}  // namespace

Remedy remedyFor(const JobView& job, const Culprit& culprit, bool deterministic, std::size_t window) {
  return culprit.kind == CulpritKind::rank ? splitFor(job, culprit.rank, window)
                                           : routeAround(job, culprit, deterministic);
}

Remedy undoOf(const JobView& job, const Remedy& applied) {
  Remedy undo{.kind = applied.kind};
  if (applied.kind == Remedy::Kind::splitMicroBatches) {
    int total = 0;
    for (const int each : applied.microBatches) total += each;
    undo.microBatches = rebalance::equalSplit(static_cast<int>(applied.microBatches.size()), total);
    undo.text = "micro-batches are split equally again, " + splitText(undo.microBatches);
    return undo;
  }
  for (const RingPlan& ring : applied.rings) {
    const auto communicator = job.communicators().find(ring.communicator);
    if (communicator != job.communicators().end())
      undo.rings.push_back({ring.communicator, 0, ring.before, ring.order});
  }
  undo.text = "rings follow their first order again";
  return undo;
}

}  // namespace falcon::control
