#include "collectives/group_run.h"

#include <algorithm>

#include "base/log.h"
#include "collectives/direct_plan.h"

namespace falcon::collectives {
namespace {

// With checks: how long a rank may keep the others waiting before it is named.
constexpr Nanoseconds longWait = 10s;

}  // namespace

size_t GroupRun::memberIndex(LocalMember& local) {
  for (size_t i = 0; i < members_.size(); ++i)
    if (members_[i].local == &local) return i;
  members_.emplace_back(local);
  return members_.size() - 1;
}

Status GroupRun::add(LocalMember& local, const Call& call, const ProfiledCall& profiled) {
  if (const Status possible = checkCall(local, call); !possible) return possible;
  const size_t index = memberIndex(local);
  if (isToOneself(local, call)) {
    auto& own = call.operation == Operation::send ? members_[index].ownSends : members_[index].ownReceives;
    own.push_back(entries_.size());
  }
  entries_.emplace_back(index, call, profiled);
  return {};
}

Status GroupRun::checkOwnMessages() const {
  for (const Member& member : members_) {
    if (member.ownSends.size() != member.ownReceives.size())
      return log::decided(Error::invalidUsage(
          "{} sends to and {} receives from rank {} itself in one group: each needs its counterpart in the same group",
          member.ownSends.size(), member.ownReceives.size(), member.local->shape.rank));
    for (size_t i = 0; i < member.ownSends.size(); ++i) {
      const Call& send = entries_[member.ownSends[i]].call;
      const Call& receive = entries_[member.ownReceives[i]].call;
      if (send.count * sizeOf(send.type) != receive.count * sizeOf(receive.type))
        return log::decided(Error::invalidUsage("rank {} sends {} bytes to itself and receives {}",
                                                member.local->shape.rank, send.count * sizeOf(send.type),
                                                receive.count * sizeOf(receive.type)));
    }
  }
  return {};
}

Status GroupRun::start() {
  if (const Status paired = checkOwnMessages(); !paired) return paired;
  openCalls_ = entries_.size();
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    LocalMember& local = *members_[entry.member].local;
    const Operation operation = entry.call.operation;
    if (!isPointToPoint(operation)) {
      entry.sequence = local.nextCollective.fetch_add(1, std::memory_order_relaxed);
      members_[entry.member].collectives.push_back(i);
      continue;
    }
    auto& counters = operation == Operation::send ? local.sent : local.received;
    entry.sequence = counters[entry.call.peer]++;
    if (!isToOneself(local, entry.call)) startMessage(i);
  }
  for (size_t m = 0; m < members_.size(); ++m) {
    const Member& member = members_[m];
    for (size_t i = 0; i < member.ownSends.size(); ++i) {
      const size_t send = member.ownSends[i];
      const size_t receive = member.ownReceives[i];
      const TaskPlan plan = planOwnMessage(member.local->shape, entries_[send].call, entries_[receive].call);
      if (entries_[send].call.count > 0) {
        tellLaunch(send, std::span(&plan, 1), nullptr);
        tellLaunch(receive, ProfiledWay());
        addTask(send, plan);
      }
      // The send carries the task; the receive is complete with it.
      closeIfDone(entries_[receive]);
      closeIfDone(entries_[send]);
    }
    startCollectives(m);
  }
  closeLaunches();
  return {};
}

GroupRun::Queue& GroupRun::queueOf(size_t member, const QueueKey& key) {
  for (Queue& queue : queues_)
    if (queue.member == member && queue.key == key) return queue;
  queues_.push_back({.member = member, .key = key, .tasks = {}});
  return queues_.back();
}

bool GroupRun::recordsTransfers(const Entry& entry) const {
  const TransferRecorder* recorder = members_[entry.member].local->hooks.transfers;
  return recorder && recorder->enabled();
}

std::optional<TransferWatch> GroupRun::watchFor(const Entry& entry, int channel, std::size_t chunkBytes,
                                                bool aroundRing) const {
  const LocalMember& local = *members_[entry.member].local;
  const bool live = entry.profiled.wants(plugin::bitsThatTell(plugin::proxyOpEvent));
  if (!live && !recordsTransfers(entry)) return {};
  TransferTiming origin;
  origin.communicator = local.id();
  origin.sequence = entry.sequence;
  origin.channel = channel;
  origin.aroundRing = aroundRing;
  TransferWatch watch(clock_, origin, recordsTransfers(entry));
  if (live) {
    const std::size_t steps = (bytesOf(local.shape, entry.call) + chunkBytes - 1) / chunkBytes;
    watch.tellLive(std::make_unique<ProfiledTransfers>(
        entry.profiled, ProfiledTransfers::Size{channel, static_cast<int>(std::max<std::size_t>(steps, 1)),
                                                static_cast<int>(chunkBytes)}));
  }
  return watch;
}

void GroupRun::addTask(size_t index, const TaskPlan& plan, bool checks) {
  Entry& entry = entries_[index];
  StepRunner runner(members_[entry.member].local->ports, plan.rounds, plan.operands);
  if (!checks)
    if (auto watch = watchFor(entry, plan.queue.channel, members_[entry.member].local->shape.chunkBytes,
                              plan.rounds.lane() == transport::Lane::ring))
      runner.watch(std::move(*watch));
  ++entry.openTasks;
  auto channel = checks ? nullptr : channelOf(index, plan.queue.channel);
  queueOf(entry.member, plan.queue).tasks.push_back({index, std::move(runner), checks, std::move(channel)});
}

/// False: this call needs connections.
bool GroupRun::addDirectTask(size_t index) {
  Entry& entry = entries_[index];
  const LocalMember& local = *members_[entry.member].local;
  if (!local.direct) return false;
  auto runner = planDirect(*local.direct, local.shape, entry.call);
  if (!runner) return false;
  tellLaunch(index, {1, "DIRECT"});
  if (auto watch = watchFor(entry, 0, local.shape.chunkBytes)) runner->watch(std::move(*watch));
  ++entry.openTasks;
  auto channel = channelOf(index, 0);
  queueOf(entry.member, {.kind = QueueKey::Kind::board})
      .tasks.push_back({index, std::move(*runner), false, std::move(channel)});
  return true;
}

void GroupRun::startMessage(size_t index) {
  Entry& entry = entries_[index];
  const MemberShape& shape = members_[entry.member].local->shape;
  if (shape.checksCalls) [[unlikely]] {
    entry.statements.assign(2, statementOf(entry.call, entry.sequence));
    if (entry.call.operation == Operation::receive) entry.statements[1].missing = 1;
    entry.stated = clock_.now();
    checks_ = true;
    addTask(index, planStatement(shape, entry.call, entry.statements[1]), true);
  }
  if (entry.call.count > 0) addMessageTask(index);
  closeIfDone(entry);
}

void GroupRun::addMessageTask(size_t index) {
  Entry& entry = entries_[index];
  const LocalMember& local = *members_[entry.member].local;
  const TaskPlan plan = planMessage(local.shape, entry.call);
  tellLaunch(index, std::span(&plan, 1), nullptr);
  if (!local.direct || !local.direct->mail()) return addTask(index, plan);
  DirectMessage message(*local.direct, entry.call);
  if (auto watch = watchFor(entry, plan.queue.channel, local.shape.messageChunkBytes)) message.watch(std::move(*watch));
  ++entry.openTasks;
  auto channel = channelOf(index, plan.queue.channel);
  queueOf(entry.member, plan.queue).tasks.push_back({index, std::move(message), false, std::move(channel)});
}

/// A collective starts when its ring is decided; later ones wait behind it.
bool GroupRun::startCollectives(size_t index) {
  Member& member = members_[index];
  bool started = false;
  while (member.started < member.collectives.size()) {
    const size_t next = member.collectives[member.started];
    Entry& entry = entries_[next];
    entry.ring = member.local->rings.start(entry.sequence);
    if (!entry.ring) break;
    ++member.started;
    started = true;
    const MemberShape& shape = member.local->shape;
    if (shape.checksCalls && shape.size > 1) [[unlikely]] {
      entry.statements.assign(shape.size, {.missing = 1});
      entry.stated = clock_.now();
      checks_ = true;
      entry.statements[shape.rank] = statementOf(entry.call, entry.sequence);
      addTask(next, planStatements(shape, *entry.ring, entry.statements), true);
      continue;
    }
    startTasks(next);
  }
  return started;
}

void GroupRun::startTasks(size_t index) {
  Entry& entry = entries_[index];
  const LocalMember& local = *members_[entry.member].local;
  const TunedWay tuned = local.tuner ? tunedWay(*local.tuner, local.shape, entry.call) : TunedWay();
  if (!tuned.choosesAlgorithm() && addDirectTask(index)) return;
  const Way way = chooseWay(local.shape, entry.call, tuned);
  const auto plans = planCollective(local.shape, entry.call, way, *entry.ring);
  tellLaunch(index, plans, way.algorithm);
  for (const TaskPlan& plan : plans) addTask(index, plan);
  closeIfDone(entry);
}

/// Calls that all ranks make alike go on. Here and not where the statements arrive: new tasks may move the queues.
void GroupRun::finishChecks() {
  for (const size_t index : std::exchange(checked_, {})) {
    Entry& entry = entries_[index];
    if (!members_[entry.member].error) {
      const Status alike = compare(entry);
      if (!alike) {
        // Whatever the network tells meanwhile (another one that found it has left): this is why.
        members_[entry.member].local->fail(alike.error());
        giveUp(entry.member, alike.error());
      }
      if (alike && !isPointToPoint(entry.call.operation)) startTasks(index);
    }
    closeIfDone(entry);
  }
}

Status GroupRun::compare(const Entry& entry) const {
  const Rank self = members_[entry.member].local->shape.rank;
  if (!isPointToPoint(entry.call.operation)) return compareCollectives(entry.statements);
  if (entry.call.operation == Operation::send) return {};  // the receiver compares
  return compareMessages(entry.call.peer, entry.statements[1], self, entry.statements[0]);
}

/// Who keeps the others waiting is said once for each call: the wait itself is no error.
void GroupRun::nameMissing() {
  const Nanoseconds now = clock_.now();
  for (Entry& entry : entries_) {
    if (entry.missed || entry.closed || entry.statements.empty() || now - entry.stated < longWait) continue;
    entry.missed = true;
    const Rank self = members_[entry.member].local->shape.rank;
    const std::string call = describe(statementOf(entry.call, entry.sequence));
    if (!isPointToPoint(entry.call.operation)) {
      const Rank rank = missingRank(entry.statements, *entry.ring, self);
      if (rank >= 0)
        log::notice(
            "NCCL_FALCON_CHECK: rank {} has not come to collective {} of the communicator, which rank {} began "
            "{:.0f} s ago with {}; still waiting",
            rank, entry.sequence, self, seconds(now - entry.stated), call);
    } else if (entry.statements[1].missing) {
      log::notice(
          "NCCL_FALCON_CHECK: rank {} has not sent message {} to rank {}, which waits for it since {:.0f} s "
          "with {}; still waiting",
          entry.call.peer, entry.sequence, self, seconds(now - entry.stated), call);
    }
  }
}

void GroupRun::closeIfDone(Entry& entry) {
  if (entry.openTasks > 0 || entry.closed) return;
  entry.closed = true;
  --openCalls_;
}

bool GroupRun::checkHealth(size_t index) {
  Member& member = members_[index];
  if (member.error) return false;
  const Status healthy = member.local->health();
  if (!healthy) giveUp(index, healthy.error());
  return static_cast<bool>(healthy);
}

bool GroupRun::progress() {
  // Who found a difference leaves. What it stated before that lies in the connection, and says more than its leaving.
  if (checks_ && progressQueues()) [[unlikely]]
    return true;
  bool moved = false;
  for (size_t m = 0; m < members_.size(); ++m)
    if (checkHealth(m)) moved |= startCollectives(m);
  closeLaunches();
  moved |= progressQueues();
  if (checks_ && !moved) [[unlikely]]
    nameMissing();
  return moved;
}

bool GroupRun::progressQueues() {
  bool moved = false;
  for (Queue& queue : queues_) {
    if (queue.empty()) continue;
    const auto progressed = progressQueue(queue);
    if (!progressed) giveUp(queue.member, members_[queue.member].local->fail(progressed.error()));
    moved |= !progressed || *progressed;
  }
  if (!checked_.empty()) [[unlikely]]
    finishChecks();
  return moved;
}

Result<bool> GroupRun::progressQueue(Queue& queue) {
  Task& task = queue.tasks[queue.running];
  if (task.channel) [[unlikely]]
    task.channel->begin();
  const auto state = std::visit([](auto& runner) { return runner.progress(); }, task.runner);
  if (!state) return state.error();
  if (*state == StepRunner::State::finished) {
    complete(task);
    ++queue.running;
    return true;
  }
  return *state == StepRunner::State::advanced;
}

void GroupRun::complete(Task& task) {
  Entry& entry = entries_[task.entry];
  TransferWatch* transfers = std::visit([](const auto& runner) { return runner.transfers(); }, task.runner);
  if (transfers) {
    transfers->finish();
    if (TransferRecorder* recorder = members_[entry.member].local->hooks.transfers) transfers->tell(*recorder);
  }
  task.channel.reset();
  --entry.openTasks;
  if (task.checks) [[unlikely]]
    checked_.push_back(task.entry);
  else
    closeIfDone(entry);
}

void GroupRun::giveUp(size_t index, const Error& error) {
  Member& member = members_[index];
  if (!firstError_) firstError_ = error;
  member.error = error;
  if (member.local->direct) member.local->direct->board().giveUp();
  openCalls_ -= member.collectives.size() - member.started;
  member.started = member.collectives.size();
  for (Queue& queue : queues_) {
    if (queue.member != index) continue;
    for (; !queue.empty(); ++queue.running) {
      Entry& entry = entries_[queue.tasks[queue.running].entry];
      --entry.openTasks;
      closeIfDone(entry);
    }
  }
}

void GroupRun::appendWaitSources(std::vector<transport::WaitSource>& sources) const {
  for (const Queue& queue : queues_) {
    if (queue.empty()) continue;
    if (awaitedAtBoard(queue))
      sources.push_back({.kind = transport::WaitSource::Kind::doorbell});
    else
      std::get<StepRunner>(queue.tasks[queue.running].runner).appendWaitSources(sources);
  }
}

/// Nothing where nothing runs, or over connections.
std::optional<transport::NodeBoard::Awaited> GroupRun::awaitedAtBoard(const Queue& queue) const {
  if (queue.empty()) return {};
  const auto& runner = queue.tasks[queue.running].runner;
  if (const auto* direct = std::get_if<DirectRunner>(&runner)) return direct->awaited();
  if (const auto* message = std::get_if<DirectMessage>(&runner)) return message->awaited();
  return {};
}

bool GroupRun::waitsAtBoards() const {
  return std::any_of(queues_.begin(), queues_.end(),
                     [this](const Queue& queue) { return awaitedAtBoard(queue).has_value(); });
}

void GroupRun::announceSleep() {
  for (const Queue& queue : queues_) {
    const auto awaited = awaitedAtBoard(queue);
    if (!awaited) continue;
    transport::NodeBoard* board = &members_[queue.member].local->direct->board();
    const auto known =
        std::find_if(announced_.begin(), announced_.end(), [&](const Sleep& sleep) { return sleep.board == board; });
    if (known == announced_.end())
      announced_.push_back({board, *awaited});
    else if (known->awaited != *awaited)
      known->awaited = {};
  }
  for (const Sleep& sleep : announced_) sleep.board->announceSleep(sleep.awaited);
}

void GroupRun::withdrawSleep() {
  for (const Sleep& sleep : announced_) sleep.board->withdrawSleep();
  announced_.clear();
}

Status GroupRun::outcome() const {
  if (firstError_) return *firstError_;
  return {};
}

void GroupRun::record(Nanoseconds enter, Nanoseconds leave) const {
  for (const Entry& entry : entries_) {
    const Member& member = members_[entry.member];
    if (member.error || !member.local->hooks.calls) continue;
    const Call& call = entry.call;
    const bool grouped = entries_.size() > 1;
    member.local->hooks.calls->leave(noFlight, {member.local->id(), call.operation, call.type, call.reduction, grouped,
                                                call.peer, call.count, entry.sequence, enter, leave});
  }
}

}  // namespace falcon::collectives
