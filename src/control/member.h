// What every process of the job does for the controller: reports its iterations, obeys its orders.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/recorders.h"
#include "bootstrap/bus.h"
#include "control/call_window.h"
#include "control/communicator_table.h"
#include "control/decision_book.h"
#include "control/iteration_bundle.h"
#include "control/memory_watch.h"
#include "control/messages.h"
#include "control/outbox.h"
#include "control/plan_book.h"
#include "control/range_sums.h"
#include "control/read_budget.h"
#include "control/restart_book.h"
#include "control/role_book.h"
#include "control/told_work.h"
#include "control/transfer_sums.h"
#include "control/trap.h"
#include "gpu/launched_work.h"
#include "instrument/call_log.h"
#include "instrument/period_finder.h"
#include "instrument/processor_use.h"
#include "validate/compute_test.h"
#include "validate/gpu_sample.h"

namespace falcon::control {

/// What a member works on; all outlive it.
struct MemberParts {
  bootstrap::Bus& bus;
  const Clock& clock;
  instrument::CallLog& log;
  Trap& trap;
  TransferSums& transfers;
  CommunicatorTable& communicators;
  PlanBook& plans;
  DecisionBook& decisions;
  validate::ComputeBenchmark& benchmark;
  instrument::RangeLog* ranges = nullptr;
  validate::GpuTester* gpu = nullptr;
  gpu::LaunchedWork* launched = nullptr;
  const std::atomic<bool>* stopping = nullptr;  ///< true: somebody waits for the monitor's end
  RestartBook* restarts = nullptr;              ///< null: none is ever agreed to
  RoleBook* roles = nullptr;                    ///< likewise
};

/// Used by the monitor thread alone. member_trap.cc: its part in holding the job.
class Member {
 public:
  Member(MemberParts parts, Introduce identity);

  /// Reads the call log, reports finished iterations, tells when the trap holds everyone. Bounded work a second,
  /// whatever the rate of calls.
  void tick();
  /// `from`: who is the controller now, or was when it began what the order ends (see Authority).
  void handle(ProcessId from, const Message& order);
  /// There is a new controller: everything it must know is said again, nothing stays held for the old one.
  void newController();
  /// Reported to the controller as soon as there is one.
  void formed(const CommunicatorFormed& communicator);
  void gone(CommunicatorId id);
  void partKnown(const PartKnown& layout);
  void restartKnown(const RestartKnown& restart);
  /// What was agreed on has been tried. What this rank calls is another's from now on, where it was done.
  void reshaped(const Reshaped& outcome);
  /// This process was held by a controller that died, and has let itself go.
  struct LetGo {
    bool asked = false;  ///< somebody had asked for it; else it was held for tests
    Nanoseconds held{0};
  };
  /// News of the bus: that process is no longer there.
  std::optional<LetGo> left(ProcessId process);
  /// This process cannot do its part any more: it holds nobody, and asks the job to go on without Falcon.
  void giveUp();
  /// This process's part in the job ends in order.
  void end();
  /// It has been told to close the trap, and not said yet that everybody is held.
  bool isClosing() const { return trapId_ != 0 && !trapReported_; }
  bool isOff() const { return off_; }

 private:
  void say(const Message& message) { parts_.bus.toController(encode(message)); }
  std::set<CommunicatorId> vendorsCommunicators();
  Nanoseconds deviceTolerance() const;
  void readQuota();
  void sayMemory();
  void readLog();
  void overrun(std::uint64_t lost, Nanoseconds now);
  void report(const instrument::IterationSample& iteration);
  void disturbed() { disturbedUntil_ = parts_.clock.now(); }  ///< the disturbance that began at disturbedFrom_ ends now
  void order(const SetProfiling& order);
  void order(const AskClock& order);
  void order(const CloseTrap& order);
  void order(const DrainTargets& order);
  void order(const OpenTrap& order);
  void order(const RunCompute& order);
  void testGpu(ComputeResult& result);
  void order(const RunWave& order);
  void order(const AskCounter& order);
  void order(const Propose& order);
  void tickTrap();
  void drain();
  void sayWhereItDrains(Nanoseconds recent);
  bool hasVendorsCommunicators() { return !vendorsCommunicators().empty(); }
  void letGo();
  void goOnWithout(const char* whoDied);
  void withdraw(const Propose& proposal);
  void keep(const Propose& decided);
  void recall();
  void decide(std::uint64_t agreement, bool commit);
  void giveUpUndecided();
  bool noteTraffic(const CallRecord& record);
  void stopProfiling();
  void tellProfile();
  void order(const Decide& order);
  void order(const ShowState& order);
  void order(const SwitchOff& order);

  MemberParts parts_;
  Introduce identity_;
  std::vector<CommunicatorFormed> formed_;
  std::optional<PartKnown> layout_;
  std::optional<RestartKnown> restart_;
  MemoryWatch memory_;
  std::map<CommunicatorId, Traffic> traffic_;
  instrument::PeriodFinder finder_;
  instrument::ProcessorMeter processors_;
  RangeSums ranges_;
  WorkSums work_;
  std::uint64_t nextRecord_ = 0;
  ReadBudget budget_;
  IterationBundle bundle_;
  bool overrunTold_ = false;
  std::vector<CallRecord> records_;
  CallWindow window_;
  struct Profile {
    TransferProfile transfers;
    CallTimes calls;
    Nanoseconds waitsUntil{0};  ///< for the device, to be done with these calls
  };
  std::optional<Profile> profile_;  ///< that is over, and not told yet
  Samples pending_;
  Nanoseconds disturbedFrom_{0};  ///< iterations that overlap [from, until] are not to be judged
  Nanoseconds disturbedUntil_{0};
  Nanoseconds notJudgedUntil_{0};
  std::uint64_t trapId_ = 0;    ///< closed here; 0: none
  std::uint64_t lastTrap_ = 0;  ///< the newest order's
  bool trapReported_ = false;   ///< as held
  bool heldSaid_ = false;       ///< to the callbacks
  bool heldAsked_ = false;      ///< the newest order's
  ProcessId heldBy_ = 0;        ///< the controller that closed the trap; 0: it was opened in order
  std::optional<Nanoseconds> quotaRead_;
  double quotaCores_ = 0;
  double iterationSeconds_ = 1;
  bool iterationIsSure_ = false;
  std::uint64_t pattern_ = 0, unsure_ = 0;  ///< the newest iteration's, and how many of it are provisional so far
  std::uint64_t noIterations_ = 0;          ///< of those that were counted
  struct Accepted {
    Propose proposal;
    ProcessId by = 0;
  };
  std::map<std::uint64_t, Accepted> proposals_;  ///< accepted here and not decided yet, by agreement
  std::set<std::uint64_t> orphans_;              ///< of them, those of controllers before this one
  Nanoseconds undecidedUntil_{0};                ///< when these are given up
  int lastMicroBatches_ = 0;
  ProcessId orderFrom_ = 0;  ///< while it is obeyed
  bool off_ = false;
};

}  // namespace falcon::control
