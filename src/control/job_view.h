// What the controller knows of the job: processes, communicators, layout, and every rank's iterations.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/messages.h"
#include "control/outbox.h"
#include "instrument/timeline.h"

namespace falcon::control {

/// Means over some iterations of one rank. Seconds an iteration.
struct RankMeans {
  int iterations = 0;
  double duration = 0;
  double outside = 0;               ///< outside of the library
  double outsidePerMicroBatch = 0;  ///< the same, divided by this rank's micro-batches where they are known
  double microBatches = 1;
  std::map<CommunicatorId, double> inLibrary;
  std::map<CommunicatorId, double> calls;
  std::map<std::string, double> ranges;  ///< the application's own
  /// As Sample has them; nothing where they are not known of every iteration.
  std::optional<double> processor, busyCores, stolenCores;
};

/// What per-channel timing saw of one rank, and over how many iterations; 0: nothing.
struct TransferView {
  std::vector<TransferSum> sums;
  std::uint64_t iterations = 0;
  std::vector<NetCondition> net{};
};

struct MemberView {
  Introduce identity;
  std::optional<PartKnown> layout;
  double reshapeSeconds = 0;  ///< what the last exchange of roles took; 0: there was none
  RestartKnown restart;
  MemoryKnown memory;
  std::map<CommunicatorId, Traffic> traffic;
  std::deque<Sample> recent;         ///< the newest, undisturbed, not provisional; bounded
  std::uint64_t received = 0;        ///< such samples ever
  std::optional<RankMeans> healthy;  ///< the baseline
  double healthyQuotaCores = 0;      ///< its Sample::quotaCores then
  TransferView healthyTransfers;
  TransferView transfers;  ///< of the last profiling
  /// The same with every call, on the controller's clock unless it says otherwise; empty where they are not to be had.
  std::vector<instrument::TimelineCall> healthyCalls;
  std::vector<instrument::TimelineCall> calls;
  bool healthyCallsOnJobsClock = true, callsOnJobsClock = true;  ///< else they tell how long each took, and not when

  /// Of the last profiling, else of the baseline.
  const TransferView& newestTransfers() const { return transfers.iterations > 0 ? transfers : healthyTransfers; }
};

class JobView {
 public:
  static constexpr std::size_t keptSamples = 64;

  void handle(ProcessId from, const Introduce& message) { members_[from].identity = message; }
  void handle(ProcessId from, const PartKnown& message) { members_[from].layout = message; }
  void handle(ProcessId from, const RestartKnown& message) { members_[from].restart = message; }
  void handle(ProcessId from, const MemoryKnown& message) { members_[from].memory = message; }
  void handle(ProcessId from, const CommunicatorFormed& message) { (void)from, communicators_[message.id] = message; }
  void handle(ProcessId from, const CommunicatorGone& message) { (void)from, communicators_.erase(message.id); }
  void handle(ProcessId from, const Traffic& message) { members_[from].traffic[message.id] = message; }
  /// Keeps the samples that may be judged.
  void handle(ProcessId from, const Samples& message);
  void left(ProcessId process) { members_.erase(process); }

  const std::map<ProcessId, MemberView>& members() const { return members_; }
  std::map<ProcessId, MemberView>& members() { return members_; }
  const std::map<CommunicatorId, CommunicatorFormed>& communicators() const { return communicators_; }
  std::map<CommunicatorId, CommunicatorFormed>& communicators() { return communicators_; }

  /// The process of a job rank; nothing when nobody has that rank.
  std::optional<ProcessId> processOf(Rank jobRank) const;
  std::set<ProcessId> processesOf(const CommunicatorFormed& communicator) const;
  /// At least one communicator is known, and who has each of their ranks.
  bool isComplete() const;
  std::set<ProcessId> allProcesses() const;
  /// Samples every member has delivered since `mark` (a result of receivedNow()).
  std::map<ProcessId, std::uint64_t> receivedNow() const;
  int samplesSince(const std::map<ProcessId, std::uint64_t>& mark) const;
  /// The same of three quarters of the members.
  int samplesOfMostSince(const std::map<ProcessId, std::uint64_t>& mark) const;
  /// Means of a member's newest `count` samples, but for the last `skipped`.
  static RankMeans means(const MemberView& member, std::size_t count, std::size_t skipped = 0);
  /// The same beside the baseline, of an iteration as the baseline has it where this member takes several for one now,
  /// or one for several. Nothing where either is missing, or where an iteration has other calls than it had when it was
  /// healthy: this member cuts its iterations elsewhere now, and their times are of other work.
  static std::optional<RankMeans> comparableMeans(const MemberView& member, std::size_t count);

 private:
  std::vector<std::uint64_t> countsSince(const std::map<ProcessId, std::uint64_t>& mark) const;

  std::map<ProcessId, MemberView> members_;
  std::map<CommunicatorId, CommunicatorFormed> communicators_;
};

}  // namespace falcon::control
