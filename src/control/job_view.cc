#include "control/job_view.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace falcon::control {
namespace {

// What an iteration may have more or fewer calls than in the baseline: some of them come at the border of two.
constexpr double otherCalls = 0.25;
// What a whole number of iterations may, that are counted as one.
constexpr double otherCallsOfSeveral = 0.1;

/// What sums up over iterations; how many micro-batches one has does not.
void divide(RankMeans& means, double divisor) {
  means.duration /= divisor;
  means.outside /= divisor;
  means.outsidePerMicroBatch /= divisor;
  for (auto& [id, seconds] : means.inLibrary) seconds /= divisor;
  for (auto& [id, calls] : means.calls) calls /= divisor;
  for (auto& [name, seconds] : means.ranges) seconds /= divisor;
  if (means.processor) *means.processor /= divisor;
}

double callsOf(const RankMeans& means) {
  double sum = 0;
  for (const auto& [id, calls] : means.calls) sum += calls;
  return sum;
}

}  // namespace

void JobView::handle(ProcessId from, const Samples& message) {
  MemberView& member = members_[from];
  for (const Sample& sample : message.samples) {
    if (sample.disturbed || sample.provisional) continue;
    if (!member.recent.empty() && member.recent.back().pattern != sample.pattern) member.recent.clear();
    member.recent.push_back(sample);
    ++member.received;
    if (member.recent.size() > keptSamples) member.recent.pop_front();
  }
}

std::optional<ProcessId> JobView::processOf(Rank jobRank) const {
  for (const auto& [process, member] : members_)
    if (member.identity.jobRank == jobRank) return process;
  return std::nullopt;
}

std::set<ProcessId> JobView::processesOf(const CommunicatorFormed& communicator) const {
  std::set<ProcessId> processes;
  for (const Rank rank : communicator.jobRanks)
    if (const auto process = processOf(rank)) processes.insert(*process);
  return processes;
}

bool JobView::isComplete() const {
  for (const auto& [id, communicator] : communicators_)
    for (const Rank rank : communicator.jobRanks)
      if (!processOf(rank)) return false;
  return !communicators_.empty();
}

std::set<ProcessId> JobView::allProcesses() const {
  std::set<ProcessId> processes;
  for (const auto& [process, member] : members_) processes.insert(process);
  return processes;
}

std::map<ProcessId, std::uint64_t> JobView::receivedNow() const {
  std::map<ProcessId, std::uint64_t> received;
  for (const auto& [process, member] : members_) received[process] = member.received;
  return received;
}

int JobView::samplesSince(const std::map<ProcessId, std::uint64_t>& mark) const {
  const auto counts = countsSince(mark);
  return counts.empty() ? 0 : static_cast<int>(counts.front());
}

int JobView::samplesOfMostSince(const std::map<ProcessId, std::uint64_t>& mark) const {
  const auto counts = countsSince(mark);
  return counts.empty() ? 0 : static_cast<int>(counts[counts.size() / 4]);
}

std::vector<std::uint64_t> JobView::countsSince(const std::map<ProcessId, std::uint64_t>& mark) const {
  std::vector<std::uint64_t> counts;
  for (const auto& [process, member] : members_) {
    const auto before = mark.find(process);
    counts.push_back(member.received - (before == mark.end() ? 0 : before->second));
  }
  std::sort(counts.begin(), counts.end());
  return counts;
}

RankMeans JobView::means(const MemberView& member, std::size_t count, std::size_t skipped) {
  RankMeans means;
  skipped = std::min(skipped, member.recent.size());
  const std::size_t used = std::min(count, member.recent.size() - skipped);
  if (used > 0) means.microBatches = 0;
  // An iteration may lack the kernel's account, where that was not read just then.
  std::size_t known = 0;
  double processor = 0, busy = 0, stolen = 0, knownSeconds = 0;
  const auto end = member.recent.end() - static_cast<std::ptrdiff_t>(skipped);
  for (auto sample = end - static_cast<std::ptrdiff_t>(used); sample != end; ++sample) {
    means.duration += sample->seconds;
    means.outside += sample->outside;
    means.microBatches += std::max(1, sample->microBatches);
    means.outsidePerMicroBatch += sample->outsidePerMicroBatch();
    for (const CommunicatorTime& time : sample->communicators) {
      means.inLibrary[time.id] += time.seconds;
      means.calls[time.id] += time.calls;
    }
    for (const RangeTime& range : sample->ranges) means.ranges[range.name] += range.seconds;
    if (sample->processor < 0) continue;
    ++known;
    knownSeconds += sample->seconds;
    processor += sample->processor;
    busy += sample->busyCores * sample->seconds;
    stolen += sample->stolenCores * sample->seconds;
  }
  if (used == 0) return means;
  if (2 * known >= used && knownSeconds > 0) {
    means.processor = processor * means.duration / knownSeconds;
    means.busyCores = busy / knownSeconds;
    means.stolenCores = stolen / knownSeconds;
  }
  const auto divisor = static_cast<double>(used);
  means.iterations = static_cast<int>(used);
  means.microBatches /= divisor;
  divide(means, divisor);
  return means;
}

std::optional<RankMeans> JobView::comparableMeans(const MemberView& member, std::size_t count) {
  if (!member.healthy) return std::nullopt;
  RankMeans now = means(member, count);
  if (now.iterations == 0) return std::nullopt;
  // Another split changes the calls too, and is reckoned with elsewhere.
  if (std::abs(now.microBatches - member.healthy->microBatches) > 1e-9) return now;
  const double usual = callsOf(*member.healthy), calls = callsOf(now);
  if (std::abs(calls - usual) <= otherCalls * usual) return now;
  if (usual <= 0 || calls <= 0) return std::nullopt;
  const double ratio = calls / usual;
  const double several = ratio > 1 ? std::round(ratio) : 1 / std::round(1 / ratio);
  if (std::abs(ratio / several - 1) > otherCallsOfSeveral) return std::nullopt;
  divide(now, several);
  return now;
}

}  // namespace falcon::control
