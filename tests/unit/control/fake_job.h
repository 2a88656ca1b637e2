// A job in arithmetic, on a clock that the test moves: 4 or 8 members that train, answer the controller as real ones
// would, and have faults on demand.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "control/controller.h"
#include "topology/layout.h"
#include "validate/link_measurement.h"

namespace falcon::control::test {

inline constexpr CommunicatorId worldId = 1, dataId = 100, pipelineId = 200;

/// Replicas are pipelines; every stage's gradients go round a ring; a communicator over all ends the iteration. Times
/// are those that a synchronous job shows: who comes last waits for nobody. Members and controller exchange messages
/// with a delay; nothing else connects them.
class FakeJob final : public Outbox, public EventSink {
 public:
  /// @param ranksOfNode  0: a replica is a node
  explicit FakeJob(ControllerSettings settings = {}, topology::Layout layout = {4, 2, 1}, int ranksOfNode = 0);

  // What the test does to it.
  std::map<Rank, double> compute;  ///< factors of a rank's own time
  double byTurns = 1;              ///< the same of another rank in each iteration
  std::map<Rank, double> quota;    ///< cores that a rank's cgroup lets it use; none: no quota
  bool onGpus = false;             ///< GPUs compute: the test of the processor finds nothing, that of the GPU does
  std::map<Link, double> links;    ///< factors of the time to move a byte; job ranks
  bool trees = false;              ///< collectives go up and down the first tree instead of round the ring
  std::map<Rank, double> loading;  ///< seconds an iteration in the range "data", beside `usualLoading`
  double everyone = 1;             ///< factor of everything
  /// Of an iteration, by its number: told, and computing takes as many times as long. Nothing: it is not told, and
  /// is 1.
  std::function<double(std::int64_t)> work;
  double othersCores = -1;    ///< of the 8 of the only host, that programs outside of the job use; -1: nobody tells
  double processorTime = 1;   ///< factor of the processor time that the ranks need
  std::uint32_t pattern = 1;  ///< which calls the ranks make
  /// Orders for which this is true are never answered, and not obeyed.
  std::function<bool(Rank, const Message&)> deaf;
  std::set<Rank> refusing;  ///< vote no
  std::set<Rank> idle;      ///< are in the job and take no part in iterations, as far as anybody is told
  bool shrinks = false;     ///< the job goes on without who has left
  int microBatches = 32;
  std::set<std::vector<Rank>> restartsWithout;  ///< what members were told to leave out, each

  void run(double seconds);
  /// Runs until there are `count` events of the kind, at most `limit` seconds; says whether there are.
  bool runUntil(EventKind kind, double limit, int count = 1);
  /// The process ends; the rest of the job stands still, unless it shrinks.
  void leave(Rank rank);
  void say(Rank rank, const Message& message) { inbox_.push_back({processOf(rank), message}); }
  /// Another process becomes the controller; all members introduce themselves again.
  void changeController();

  // What the test looks at.
  Controller& controller() { return *controller_; }
  int count(EventKind kind) const;
  const Event* first(EventKind kind) const;
  const Event* last(EventKind kind) const;
  /// Kinds in the order they were said, the job's start and baseline left out; and the same without the first ones.
  std::vector<EventKind> story() const { return storyAfter(0); }
  std::vector<EventKind> storyAfter(std::size_t skipped) const;
  std::string text() const;
  template <class Order>
  int sent() const {
    int found = 0;
    for (const auto& [process, message] : sent_) found += std::holds_alternative<Order>(message);
    return found;
  }
  /// What a request to suspend or resume was answered; the last word counts.
  std::optional<SuspendOutcome> lastAnswer(std::uint64_t request, std::uint32_t attempt = 0) const {
    std::optional<SuspendOutcome> found;
    for (const auto& [process, message] : sent_)
      if (const auto* answer = std::get_if<SuspendAnswer>(&message);
          answer && answer->request == request && answer->attempt == attempt)
        found = answer->outcome;
    return found;
  }
  /// What a request for an examination was answered.
  std::optional<Examined> examined(std::uint64_t request) const {
    for (const auto& [process, message] : sent_)
      if (const auto* answer = std::get_if<Examined>(&message); answer && answer->request == request) return *answer;
    return std::nullopt;
  }
  bool anyHeld() const;
  bool anyUndecided() const;
  /// Whether all members are off, or none.
  std::set<bool> off() const;
  /// The splits and rings in force over all members: one entry when they agree.
  std::set<std::vector<int>> splits() const;
  std::set<std::vector<Rank>> rings(CommunicatorId id) const;
  const std::vector<Event>& events() const { return events_; }
  ManualClock clock;

 private:
  struct Member {
    Rank rank = -1;
    bool alive = true, held = false, profiling = false, off = false;
    std::uint64_t trap = 0;
    std::vector<int> split;
    std::map<CommunicatorId, std::vector<Rank>> rings;
    std::map<std::uint64_t, Propose> proposals;
    std::map<std::pair<CommunicatorId, std::pair<Rank, bool>>, TransferSum> transfers;
  };
  struct Group {
    CommunicatorId id = 0;
    std::vector<Rank> members;
    double seconds = 0;  ///< to move what a link carries
  };
  struct Spent {
    double own = 0;
    std::map<CommunicatorId, double> inLibrary;
    std::vector<TransferSum> transfers;
    double arrival = 0;
  };

  static ProcessId processOf(Rank rank) { return 100 + static_cast<ProcessId>(rank); }
  void to(ProcessId process, const Message& message) override;
  void toAll(const Message& message) override;
  void add(const Event& event) override { events_.push_back(event); }

  void makeController();
  void introduceAll();
  void step();
  void iterate();
  std::vector<Spent> nextIteration();
  void meet(const Group& group, std::vector<Spent>& spent);
  std::vector<std::pair<Rank, Rank>> linksOf(const Group& group) const;
  void obey(Member& member, const Message& order);
  void runWave(const Member& member, const RunWave& order);
  double jitter() { return std::uniform_real_distribution<>(0.985, 1.015)(random_); }
  template <class Key>
  static double factor(const std::map<Key, double>& factors, Key key) {
    const auto found = factors.find(key);
    return found == factors.end() ? 1 : found->second;
  }

  ControllerSettings settings_;
  const topology::Layout layout_;
  const int ranksOfNode_;
  std::mt19937 random_{1};
  std::vector<Group> groups_;
  std::map<ProcessId, Member> members_;
  std::deque<std::pair<ProcessId, Message>> inbox_, orders_;
  std::vector<std::pair<ProcessId, Message>> sent_;
  std::vector<Event> events_;
  std::vector<Spent> spent_;  ///< of the iteration under way
  Nanoseconds iterationEnds_{0};
  bool disturbed_ = false;
  std::int64_t iteration_ = 0;
  std::unique_ptr<Controller> controller_;
};

}  // namespace falcon::control::test
