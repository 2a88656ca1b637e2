// This process's part in the job: the seams it gives to the engines, and the one monitor thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/call_counts.h"
#include "base/engine.h"
#include "collectives/host_communicator.h"
#include "control/health.h"
#include "gpu/launched_work.h"
#include "instrument/making.h"
#include "transport/reactor.h"

namespace falcon::control {

/// What ncclFalconLayout_t says of new splits and of the NIC; 0: nothing.
struct LayoutLimits {
  int multiple = 1;
  int leastMicroBatches = 0, mostMicroBatches = 0;
  bool evenOnly = false;
  int rail = 0;
  bool operator==(const LayoutLimits&) const = default;
};

/// ncclFalconLayout_t, checked.
struct RegisteredPart {
  int dataParallelSize = 1, pipelineParallelSize = 1, tensorParallelSize = 1;
  int dataParallelIndex = 0, pipelineParallelIndex = 0, tensorParallelIndex = 0;
  int microBatches = 1;
  LayoutLimits limits{};
  bool operator==(const RegisteredPart&) const = default;
};

/// Of an ncclFalconLayout_t that layoutFits().
template <class Given>
RegisteredPart registeredPartOf(const Given& given) {
  return {given.dataParallelSize,
          given.pipelineParallelSize,
          given.tensorParallelSize,
          given.dataParallelIndex,
          given.pipelineParallelIndex,
          given.tensorParallelIndex,
          given.microBatches,
          {given.microBatchMultiple > 1 ? given.microBatchMultiple : 1, given.leastMicroBatches, given.mostMicroBatches,
           given.evenOnly != 0, given.rail}};
}

/// ncclFalconPlan_t.
struct IterationPlan {
  std::uint64_t version = 0;
  int microBatches = 1;
  int firstMicroBatch = 0;
  double gradientWeight = 1;
};

/// The plan where nobody re-split anything: as equal as whole micro-batches allow, the first replicas take one more.
IterationPlan equalSplit(const RegisteredPart& part);

/// A communicator as Falcon knows it. `host` is null for the vendor engine: no link tests and no re-route then.
struct KnownCommunicator {
  Membership* membership = nullptr;
  collectives::HostCommunicator* host = nullptr;
  std::vector<collectives::MemberInfo> members;  ///< by rank
  transport::Secret secret{};
  std::string name;                    ///< as the application calls it; "" where it does not
  const CallCounts* counts = nullptr;  ///< what its rank has entered; outlives it here
};

/// Thread-safe. Exists only while Falcon is on and someone holds it: every communicator holds it.
class Job {
 public:
  /// The process's job, started at the first use; null when NCCL_FALCON is not 1. What of Falcon cannot start is turned
  /// off with one WARN: this never fails. `fallbackName` names the job where the environment does not: the key of the
  /// first unique id, in hex.
  static std::shared_ptr<Job> acquire(std::shared_ptr<transport::Reactor> reactor, const std::string& fallbackName);

  virtual ~Job() = default;

  /// Valid as long as the job is held.
  virtual EngineHooks hooks() = 0;
  /// What the other members must know, for MemberInfo::extra.
  virtual std::string contact() const = 0;

  /// Told what the vendor's communicators launch. Valid as long as the job is held.
  virtual gpu::LaunchedWork& launchedWork() = 0;

  /// Shows outside that this process makes a communicator, while the result lives; it keeps the job.
  virtual instrument::Making making(const instrument::MakingEntry& entry) = 0;

  /// Gives the place of the communicator for CallRecorder::enter(). Without memory for it the job does not know the
  /// communicator, which works all the same: that is said, and the place is noPlace.
  virtual int add(KnownCommunicator communicator) noexcept = 0;
  /// Before it is destroyed, whether the job knows it or not. When it returns, the monitor no longer uses it.
  virtual void remove(Membership& membership) noexcept = 0;

  /// Ranks that are threads of one process are told apart by their memberships.
  virtual Status registerLayout(Membership& membership, const RegisteredPart& layout) = 0;
  /// Ranks of the job can exchange roles: `role` is that of this one, which has so much state. Roles are numbered as
  /// ranks of the job, so that a communicator with another order is never asked to. Said again after each change.
  virtual void canReshape(Membership& membership, int role, std::uint64_t stateBytes) = 0;
  /// An exchange that all have agreed on, to be done before this iteration; may hold the caller while it is being
  /// agreed.
  struct RolesDue {
    std::uint64_t agreement = 0;
    std::vector<int> roles;
    std::vector<Link> avoid;  ///< slow ones, over which no state should go
  };
  virtual std::optional<RolesDue> rolesDue(Membership& membership, std::uint64_t iteration) = 0;
  /// How it went, and how long it took; `problem` "": it is done.
  virtual void reshaped(const RolesDue& change, double seconds, const std::string& problem) = 0;

  /// Local; may hold the caller while a plan is being agreed or the job is trapped.
  virtual Result<IterationPlan> iterationBegin(Membership& membership, std::uint64_t iteration) = 0;

  /// Whether the job is to restart at the end of this iteration, alike on all ranks; may hold the caller while that is
  /// being agreed.
  virtual bool restartWanted(std::uint64_t iteration) = 0;
  /// The same of what is decided already: for who does not ask for restarts, and is not counted as who does.
  virtual bool restartDecided(std::uint64_t iteration) = 0;
  /// What the controller thinks of the job, as this process was told last.
  virtual Health health() = 0;
  /// Whom that restart leaves out, ranks of the job; empty: nobody, or none was decided.
  virtual std::vector<Rank> leftOut() = 0;
  /// The framework is about to end and to be started again.
  virtual void restarts() = 0;
  /// A checkpoint was taken: the number, how long training waited, and how long the one before took to be written.
  virtual void checkpointed(std::uint64_t iteration, double waitedSeconds, double writtenSeconds, bool seesOthers) = 0;
  /// Runs `work`, for whose calling thread the trap does not wait meanwhile: it waits for other ranks itself.
  virtual void aside(const std::function<void()>& work) = 0;

  /// Holds the whole job until resume(), `limit` at most; returns when every rank is held. Errors: it is suspended
  /// already (invalidUsage), not all ranks came (system), one died (remote).
  virtual Status suspend(Nanoseconds limit) = 0;
  /// Lets it go; any process may. Errors: it is not suspended (invalidUsage).
  virtual Status resume() = 0;
};

/// How long ncclFalconSuspend holds a job that is asked to hold it so long; 0: NCCL_FALCON_TRAP_TIMEOUT. Errors
/// (invalidArgument): longer than anybody may.
Result<Nanoseconds> suspensionLimit(const char* function, unsigned milliseconds);

/// The job's name as the environment gives it (NCCL_FALCON_JOB, TORCHELASTIC_RUN_ID with the restart count,
/// SLURM_JOB_ID),
/// "" where it gives none.
std::string jobNameFromEnvironment();

}  // namespace falcon::control
