#include "fake_job.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"
#include "rebalance/micro_batch_split.h"
#include "topology/binary_tree.h"
#include "validate/gpu_sample.h"

namespace falcon::control::test {
namespace {

constexpr Nanoseconds stepTime = 50ms;
constexpr double microBatchSeconds = 0.02;
constexpr double usualLoading = 0.001;
constexpr double linkBytes = 1e6;

double extra(const std::map<Rank, double>& seconds, Rank rank) {
  const auto found = seconds.find(rank);
  return found == seconds.end() ? 0 : found->second;
}

Nanoseconds asTime(double seconds) {
  return Nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

}  // namespace

FakeJob::FakeJob(ControllerSettings settings, topology::Layout layout, int ranksOfNode)
    : settings_(settings), layout_(layout), ranksOfNode_(ranksOfNode > 0 ? ranksOfNode : layout.pipelineSize) {
  for (int d = 0; d < layout.dataSize && layout.pipelineSize > 1; ++d)
    groups_.push_back(
        {pipelineId + static_cast<CommunicatorId>(d), layout.pipelineGroup(layout.rankAt({d, 0, 0})), 0.01});
  for (int p = 0; p < layout.pipelineSize; ++p)
    groups_.push_back({dataId + static_cast<CommunicatorId>(p), layout.dataGroup(layout.rankAt({0, p, 0})), 0.03});
  std::vector<Rank> all(static_cast<std::size_t>(layout.size()));
  std::iota(all.begin(), all.end(), 0);
  groups_.push_back({worldId, all, 0.002});
  for (const Rank rank : all) {
    Member& member = members_[processOf(rank)];
    member.rank = rank;
    member.split = rebalance::equalSplit(layout.dataSize, microBatches);
    for (const Group& group : groups_) {
      if (std::find(group.members.begin(), group.members.end(), rank) == group.members.end()) continue;
      auto& ring = member.rings[group.id];
      ring.resize(group.members.size());
      std::iota(ring.begin(), ring.end(), 0);
    }
  }
  makeController();
  introduceAll();
}

void FakeJob::makeController() {
  controller_ = std::make_unique<Controller>(
      settings_, clock, [this] { return 1e9 + seconds(clock.now()); }, *this, *this);
}

void FakeJob::introduceAll() {
  for (auto& [process, member] : members_) {
    const auto at = layout_.coordinatesOf(member.rank);
    const std::string node = fmt::format("node{}", member.rank / ranksOfNode_);
    say(member.rank, Introduce{member.rank, "host", node, fmt::format("10.0.0.{}", member.rank), 1, "", 8});
    say(member.rank, PartKnown{layout_.dataSize, layout_.pipelineSize, 1, at.data, at.pipeline, 0, microBatches, {}});
    for (const Group& group : groups_) {
      const auto found = std::find(group.members.begin(), group.members.end(), member.rank);
      if (found == group.members.end()) continue;
      Traffic traffic{group.id, group.id < pipelineId, {}};
      const auto index = static_cast<Rank>(found - group.members.begin());
      if (group.id >= pipelineId && index > 0) traffic.sendsTo.push_back(index - 1);
      if (group.id >= pipelineId && index + 1 < static_cast<Rank>(group.members.size()))
        traffic.sendsTo.push_back(index + 1);
      say(member.rank, traffic);
      if (index != 0) continue;
      CommunicatorFormed formed{group.id, true, group.members, {}, member.rings[group.id], {}};
      formed.firstRing.resize(group.members.size());
      std::iota(formed.firstRing.begin(), formed.firstRing.end(), 0);
      for (const Rank each : group.members) formed.nodes.push_back(fmt::format("node{}", each / ranksOfNode_));
      say(member.rank, formed);
    }
  }
}

void FakeJob::changeController() {
  controller_->handOver();
  settings_.successor = true;
  makeController();
  introduceAll();
}

void FakeJob::to(ProcessId process, const Message& message) {
  sent_.emplace_back(process, message);
  orders_.emplace_back(process, message);
}

void FakeJob::toAll(const Message& message) {
  for (const auto& [process, member] : members_)
    if (member.alive) to(process, message);
}

void FakeJob::run(double seconds) {
  for (const Nanoseconds end = clock.now() + asTime(seconds); clock.now() < end;) step();
}

bool FakeJob::runUntil(EventKind kind, double limit, int wanted) {
  for (const Nanoseconds end = clock.now() + asTime(limit); count(kind) < wanted && clock.now() < end;) step();
  return count(kind) >= wanted;
}

void FakeJob::step() {
  clock.advance(stepTime);
  auto orders = std::move(orders_);
  orders_.clear();
  for (const auto& [process, order] : orders) {
    Member& member = members_.at(process);
    if (member.alive && !member.off && !(deaf && deaf(member.rank, order))) obey(member, order);
  }
  auto inbox = std::move(inbox_);
  inbox_.clear();
  for (const auto& [process, message] : inbox)
    if (members_.at(process).alive) controller_->handle(process, message);
  iterate();
  controller_->tick();
}

void FakeJob::iterate() {
  for (const auto& [process, member] : members_)
    if (!member.alive && !shrinks) return;
  if (anyHeld()) {
    iterationEnds_ += stepTime;
    disturbed_ = true;
    return;
  }
  while (clock.now() >= iterationEnds_) {
    double jobCores = 0;
    for (const Spent& each : spent_) jobCores += each.own / everyone * processorTime / each.arrival;
    for (auto& [process, member] : members_) {
      if (spent_.empty() || member.off || idle.contains(member.rank)) continue;
      const Spent& spent = spent_[static_cast<std::size_t>(member.rank)];
      Sample sample{.index = iteration_,
                    .seconds = spent.arrival,
                    .outside = spent.own,
                    .microBatches = member.split[static_cast<std::size_t>(layout_.coordinatesOf(member.rank).data)],
                    .disturbed = disturbed_,
                    .pattern = pattern,
                    .calls = 10 * pattern,
                    .quotaCores = extra(quota, member.rank),
                    .work = work ? 1000 * work(iteration_) : 0};
      if (othersCores >= 0) {
        sample.processor = spent.own / everyone * processorTime;
        sample.busyCores = jobCores + othersCores;
        sample.stolenCores = 0;
      }
      sample.ranges = {{"data", usualLoading + extra(loading, member.rank), 1},
                       {"compute", spent.own - usualLoading - extra(loading, member.rank), 1}};
      for (const auto& [id, time] : spent.inLibrary) sample.communicators.push_back({id, time, 1});
      say(member.rank, Samples{{sample}});
      if (!member.profiling) continue;
      for (const TransferSum& transfer : spent.transfers) {
        TransferSum& sum = member.transfers[{transfer.id, {transfer.peer, transfer.sending}}];
        sum.id = transfer.id, sum.peer = transfer.peer, sum.sending = transfer.sending;
        sum.bytes += transfer.bytes, sum.ringBytes += transfer.ringBytes, sum.moving += transfer.moving;
      }
    }
    ++iteration_;
    disturbed_ = false;
    spent_ = nextIteration();
    iterationEnds_ += asTime(spent_.front().arrival);
  }
}

std::vector<FakeJob::Spent> FakeJob::nextIteration() {
  std::vector<Spent> spent(members_.size());
  for (const auto& [process, member] : members_) {
    Spent& each = spent[static_cast<std::size_t>(member.rank)];
    const int share = member.split[static_cast<std::size_t>(layout_.coordinatesOf(member.rank).data)];
    each.own = each.arrival =
        microBatchSeconds * share * everyone * jitter() * factor(compute, member.rank) * (work ? work(iteration_) : 1);
    if (iteration_ % static_cast<std::int64_t>(members_.size()) == member.rank) each.own = each.arrival *= byTurns;
    each.own = each.arrival += usualLoading + extra(loading, member.rank);
  }
  for (const Group& group : groups_) meet(group, spent);
  return spent;
}

/// The directed links that a group uses: its ring's, or a tree's or a pipeline's both ways.
std::vector<std::pair<Rank, Rank>> FakeJob::linksOf(const Group& group) const {
  std::vector<std::pair<Rank, Rank>> pairs;
  const auto size = group.members.size();
  if (trees && group.id < pipelineId) {
    for (Rank rank = 0; rank < static_cast<Rank>(size); ++rank)
      if (const Rank up = topology::firstTree(rank, static_cast<int>(size)).up; up >= 0)
        pairs.push_back({rank, up}), pairs.push_back({up, rank});
    return pairs;
  }
  if (group.id >= pipelineId) {
    for (Rank i = 0; i + 1 < static_cast<Rank>(size); ++i) pairs.push_back({i, i + 1}), pairs.push_back({i + 1, i});
    return pairs;
  }
  const auto& ring = members_.at(processOf(group.members[0])).rings.at(group.id);
  for (std::size_t i = 0; i < size; ++i) pairs.push_back({ring[i], ring[(i + 1) % size]});
  return pairs;
}

void FakeJob::meet(const Group& group, std::vector<Spent>& spent) {
  const auto of = [&](Rank rank) -> Spent& { return spent[static_cast<std::size_t>(rank)]; };
  double last = 0, slowest = 0;
  for (const Rank member : group.members) last = std::max(last, of(member).arrival);
  for (const auto& [from, to] : linksOf(group)) {
    const Rank sender = group.members[static_cast<std::size_t>(from)];
    const Rank receiver = group.members[static_cast<std::size_t>(to)];
    // A slow rank copies slowly too.
    const double moving = group.seconds * everyone * jitter() * factor(links, Link{sender, receiver}) *
                          std::max(factor(compute, sender), factor(compute, receiver));
    slowest = std::max(slowest, moving);
    const auto bytes = static_cast<std::uint64_t>(linkBytes * group.seconds);
    const auto add = [&](Rank self, Rank peer, bool sending) {
      of(self).transfers.push_back(
          {.id = group.id, .peer = peer, .sending = sending, .bytes = bytes, .ringBytes = bytes, .moving = moving});
    };
    add(sender, to, true);
    add(receiver, from, false);
  }
  for (const Rank member : group.members) {
    of(member).inLibrary[group.id] += last + slowest - of(member).arrival;
    of(member).arrival = last + slowest;
  }
}

void FakeJob::obey(Member& member, const Message& message) {
  if (const auto* profiling = std::get_if<SetProfiling>(&message)) {
    member.profiling = profiling->on;
    TransferProfile profile;
    for (const auto& [key, sum] : member.transfers) profile.sums.push_back(sum);
    member.transfers.clear();
    if (!profiling->on) say(member.rank, profile);
  } else if (const auto* close = std::get_if<CloseTrap>(&message)) {
    member.held = true;
    member.trap = close->trap;
    say(member.rank, TrapState{close->trap, true});
  } else if (const auto* open = std::get_if<OpenTrap>(&message)) {
    if (open->trap == member.trap) member.held = false;
  } else if (const auto* test = std::get_if<RunCompute>(&message)) {
    const double slowness = everyone * factor(compute, member.rank);
    ComputeResult result{test->trap, 10 * jitter() / (onGpus ? 1 : slowness), 0, 0, ""};
    if (onGpus) {
      validate::GpuSample sample;
      sample.score = {.device = "Fake 9000", .bus = "0000:17:00.0"};
      sample.score.operationsPerSecond.fill(1e14 * jitter() / slowness);
      sample.score.copyRate = sample.score.toDeviceRate = sample.score.fromDeviceRate = 1e11;
      result.gpu = validate::encode(sample);
    }
    say(member.rank, result);
  } else if (const auto* wave = std::get_if<RunWave>(&message)) {
    runWave(member, *wave);
  } else if (const auto* ask = std::get_if<AskCounter>(&message)) {
    say(member.rank, Counter{ask->agreement, static_cast<std::uint64_t>(iteration_)});
  } else if (const auto* propose = std::get_if<Propose>(&message)) {
    const bool yes = !refusing.contains(member.rank);
    if (yes) member.proposals[propose->agreement] = *propose;
    say(member.rank, Vote{propose->agreement, yes});
  } else if (const auto* decide = std::get_if<Decide>(&message)) {
    const auto proposal = member.proposals.find(decide->agreement);
    if (proposal == member.proposals.end()) return;
    const Propose& what = proposal->second;
    if (decide->commit && what.kind == AgreementKind::microBatches)
      member.split.assign(what.values.begin(), what.values.end());
    else if (decide->commit && what.kind == AgreementKind::restart)
      restartsWithout.emplace(what.values.begin(), what.values.end());
    else if (decide->commit)
      member.rings[what.communicator].assign(what.values.begin(), what.values.end());
    disturbed_ = disturbed_ || decide->commit;
    member.proposals.erase(proposal);
  } else if (std::holds_alternative<SwitchOff>(message)) {
    member.off = true;
    member.held = member.profiling = false;
  }
}

void FakeJob::runWave(const Member& member, const RunWave& order) {
  const auto wave = validate::decodeWave(order.plan);
  std::vector<validate::LinkMeasurement> measured;
  for (const validate::WaveLink& link : wave->links) {
    if (link.link.to != member.rank) continue;
    const double rate = 1e9 * jitter() / factor(links, link.link);
    measured.push_back({.communicator = link.communicator,
                        .link = link.link,
                        .status = validate::LinkStatus::measured,
                        .bytes = 1 << 22,
                        .seconds = (1 << 22) / rate,
                        .latency = 1e-4});
  }
  say(member.rank, LinkResults{order.wave, validate::encode(measured)});
}

void FakeJob::leave(Rank rank) {
  members_.at(processOf(rank)).alive = false;
  controller_->left(processOf(rank));
}

int FakeJob::count(EventKind kind) const {
  return static_cast<int>(
      std::count_if(events_.begin(), events_.end(), [&](const Event& event) { return event.kind == kind; }));
}

const Event* FakeJob::first(EventKind kind) const {
  for (const Event& event : events_)
    if (event.kind == kind) return &event;
  return nullptr;
}

const Event* FakeJob::last(EventKind kind) const {
  const Event* found = nullptr;
  for (const Event& event : events_)
    if (event.kind == kind) found = &event;
  return found;
}

std::vector<EventKind> FakeJob::storyAfter(std::size_t skipped) const {
  std::vector<EventKind> kinds;
  for (const Event& event : events_)
    if (event.kind != EventKind::jobStarted && event.kind != EventKind::periodKnown &&
        event.kind != EventKind::baselineTaken)
      kinds.push_back(event.kind);
  kinds.erase(kinds.begin(), kinds.begin() + static_cast<std::ptrdiff_t>(std::min(skipped, kinds.size())));
  return kinds;
}

std::string FakeJob::text() const {
  std::string all;
  for (const Event& event : events_)
    all +=
        fmt::format("{:8.2f} {} {}: {}\n", seconds(event.time), nameOf(event.kind), nameOf(event.culprit), event.text);
  return all;
}

bool FakeJob::anyHeld() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const auto& each) { return each.second.alive && each.second.held; });
}

bool FakeJob::anyUndecided() const {
  return std::any_of(members_.begin(), members_.end(), [](const auto& each) { return !each.second.proposals.empty(); });
}

std::set<bool> FakeJob::off() const {
  std::set<bool> states;
  for (const auto& [process, member] : members_) states.insert(member.off);
  return states;
}

std::set<std::vector<int>> FakeJob::splits() const {
  std::set<std::vector<int>> all;
  for (const auto& [process, member] : members_) all.insert(member.split);
  return all;
}

std::set<std::vector<Rank>> FakeJob::rings(CommunicatorId id) const {
  std::set<std::vector<Rank>> all;
  for (const auto& [process, member] : members_)
    if (const auto ring = member.rings.find(id); ring != member.rings.end()) all.insert(ring->second);
  return all;
}

}  // namespace falcon::control::test
