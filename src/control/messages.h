// What members and the controller say to each other over the bus. Encoded by base/wire.h, decoded defensively:
// a message that does not decode is dropped and logged.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/types.h"

namespace falcon::control {

// ---- from members ----

/// Who is speaking. The first message after joining, and again to a new controller.
struct Introduce {
  Rank jobRank = -1;
  std::string host;
  std::string node;
  std::string address;
  std::int64_t pid = 0;
  std::string clockDomain;      ///< processes of the same domain read the same steady clock; "": unknown
  std::int32_t processors = 0;  ///< of the host; 0: unknown
};

/// A communicator exists; said by its rank 0.
struct CommunicatorFormed {
  CommunicatorId id = 0;
  bool hostEngine = true;
  std::vector<Rank> jobRanks;      ///< by rank of the communicator
  std::vector<std::string> nodes;  ///< by rank
  std::vector<Rank> ring;          ///< ranks of the communicator in ring order, as it is now
  std::vector<Rank> firstRing;     ///< as it was made
};
struct CommunicatorGone {
  CommunicatorId id = 0;
};

/// The framework registered its layout.
struct PartKnown {
  int dataParallelSize = 1, pipelineParallelSize = 1, tensorParallelSize = 1;
  int dataParallelIndex = 0, pipelineParallelIndex = 0, tensorParallelIndex = 0;
  int microBatches = 1;
  std::vector<std::int32_t> split;  ///< micro-batches by replica, in force; empty: equal
  int multiple = 1;                 ///< as in LayoutLimits, and so are those below
  int leastMicroBatches = 0, mostMicroBatches = 0;
  bool evenOnly = false;
  int rail = 0;
  std::int32_t role = -1;        ///< that the rank has, numbered as ranks of the job; -1: roles are not exchanged
  std::uint64_t stateBytes = 0;  ///< that go with the role
};

/// Memory that those share who name it.
struct MemoryPart {
  std::string pool;
  std::uint64_t bytesLeft = 0;
};
/// What this process could have yet, where it can exchange its role; said again when it changes.
struct MemoryKnown {
  std::vector<MemoryPart> parts;
};

/// To the controller: how the exchange of roles went here that was agreed on.
struct Reshaped {
  std::uint64_t agreement = 0;  ///< 0: of none, the program did it itself
  bool done = false;
  double seconds = 0;   ///< that it took
  std::string problem;  ///< not done: why; then all go on with the roles that they had
};

/// What this process's framework does for a restart; said again at each checkpoint.
struct RestartKnown {
  bool asked = false;            ///< it asks at its iterations' ends whether a restart is wanted, so that it can be had
  double expectedSeconds = 0;    ///< what a restart takes, as this process was told
  double measuredSeconds = 0;    ///< what the last one took; 0: unknown here
  std::int64_t checkpoint = -1;  ///< number of the last one; -1: none yet
  double waitedSeconds = 0;      ///< training, for the last one
  double writtenSeconds = 0;     ///< the one before took in the background; 0: unknown
  bool seesOthers = true;        ///< it finds in its folder what another rank wrote
};

/// What this process does with a communicator; said again when it does more.
struct Traffic {
  CommunicatorId id = 0;
  bool collectives = false;
  std::vector<Rank> sendsTo;  ///< ranks of the communicator
};

struct CommunicatorTime {
  CommunicatorId id = 0;
  double seconds = 0;  ///< inside the library for it
  std::uint32_t calls = 0;
};

/// What the application did in an iteration, by its own names; ranges inside of ranges count for both.
struct RangeTime {
  std::string name;
  double seconds = 0;
  std::uint32_t times = 0;
};

/// One finished iteration of one process.
struct Sample {
  std::int64_t index = 0;
  double seconds = 0;
  static constexpr double unknownOutside = 0;
  double outside = 0;      ///< of it, outside of the library; unknownOutside where that is not known
  int microBatches = 0;    ///< computed by this rank; 0: unknown
  bool disturbed = false;  ///< overlapped a trap or a change of plan: not to be judged
  bool provisional = false;
  std::uint32_t pattern = 0;  ///< another number than before: this rank makes other calls
  std::uint32_t calls = 0;    ///< calls of an iteration
  double quotaCores = 0;      ///< that its cgroup lets it use; 0: as many as there are
  double processor = -1;      ///< seconds that this process and its children ran on a processor; -1: unknown
  double busyCores = -1;      ///< of the host, by whomever; -1: unknown
  double stolenCores = -1;    ///< of the host, that the hypervisor gave to others; -1: unknown
  double work = 0;            ///< as told (told_work.h), else as the sizes of messages show it; 0: unknown
  std::vector<CommunicatorTime> communicators;
  std::vector<RangeTime> ranges;

  /// Seconds; an iteration whose micro-batches are unknown counts as one.
  double outsidePerMicroBatch() const { return outside / std::max(1, microBatches); }
};
struct Samples {
  std::vector<Sample> samples;
};

/// What per-channel timing saw of one connection on one channel, summed over operations.
struct TransferSum {
  CommunicatorId id = 0;
  Rank peer = -1;  ///< rank of the communicator
  bool sending = false;
  std::uint64_t bytes = 0;
  std::uint64_t ringBytes = 0;  ///< of these, that go round the ring
  double moving = 0;            ///< seconds
  double waiting = 0;           ///< seconds
  std::int32_t channel = 0;
};
/// What this process's net plugin says of what it sends to one address: the worst of what it said meanwhile.
struct NetCondition {
  std::string peer;            ///< the address, as the plugin tells it
  std::int32_t condition = 0;  ///< falconNetHealthy ... of falcon_net_state.h
  double score = 0;            ///< 0 to 1
};
struct TransferProfile {
  std::vector<TransferSum> sums;
  std::vector<NetCondition> net;  ///< empty: there is no plugin that tells
};

/// The calls that ended while profiling was on, the newest ones; times of the process's own clock.
struct TimedCall {
  CommunicatorId communicator = 0;
  std::uint8_t operation = 0;  ///< Operation
  Rank peer = -1;
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  std::int64_t enter = 0;     ///< nanoseconds
  std::int64_t duration = 0;  ///< nanoseconds
};
struct CallTimes {
  std::vector<TimedCall> calls;
  bool onHostsClock = true;  ///< else all are off by the same, more than can be put beside other ranks' calls
};

/// Answer to AskClock. Nanoseconds of the clocks that were read.
struct ClockAnswer {
  std::int64_t asked = 0;     ///< controller's clock
  std::int64_t received = 0;  ///< the answering process's
  std::int64_t answered = 0;
};

struct TrapState {
  std::uint64_t trap = 0;
  bool held = false;
};
struct ComputeResult {
  std::uint64_t trap = 0;
  double gigaflopsPerSecond = 0;
  double throttledSeconds = -1;  ///< of the span; -1: unknown
  double runQueueSeconds = -1;
  std::string problem;           ///< not empty: the test failed
  double stolenSeconds = -1;     ///< mean over the processors that it may use
  double processorSeconds = -1;  ///< that the testing thread ran
  double wallSeconds = -1;
  double processors = -1;        ///< that it may use
  double thermalThrottles = -1;  ///< of them, in the span
  double power = -1;             ///< drawn in the span, over what the package may draw
  double memoryRate = -1;        ///< bytes per second that it moves; -1: not tested
  std::string gpu;               ///< validate::encode(GpuSample); empty: no GPU, or its test failed
};
struct LinkResults {
  std::uint64_t wave = 0;
  std::string measurements;  ///< validate's encoding
};

/// Answer to AskCounter: the number the communicator's next collective will get here.
struct Counter {
  std::uint64_t agreement = 0;
  std::uint64_t next = 0;
};
struct Vote {
  std::uint64_t agreement = 0;
  bool yes = false;
};
struct RequestOff {};
/// The longest that a job can be asked to be held, and that a member obeys.
inline constexpr Nanoseconds longestTrap = std::chrono::hours(1);

/// Somebody in this process asks for the whole job to be held, or to be let go. `request` counts up in the process.
struct AskSuspend {
  std::uint64_t request = 0;
  double limitSeconds = 10;
  /// How often it was said again, since the controller has changed: only an answer to the newest counts.
  std::uint32_t attempt = 0;
};
struct AskResume {
  std::uint64_t request = 0;
};
/// The same for all tests of a validation, of all ranks and their rings.
struct AskExamination {
  std::uint64_t request = 0;
};
/// How many calls were entered: collectives of a communicator (from and to are -1), or messages between two of its
/// ranks.
struct DrainCount {
  CommunicatorId communicator = 0;
  Rank from = -1;
  Rank to = -1;
  std::uint64_t count = 0;
};
/// A rank of the process in a communicator.
struct DrainPart {
  CommunicatorId communicator = 0;
  Rank rank = -1;
};
/// Where a process is while it drains; from one that was told to close the trap otherwise: all have to drain.
struct DrainState {
  std::uint64_t trap = 0;
  std::uint64_t version = 0;  ///< of the targets that it knows
  bool below = false;         ///< one of them: it runs on
  bool held = false;
  std::vector<DrainCount> entered;
  std::vector<DrainPart> parts;
  bool working = false;  ///< all would be held, but the device is not done with what was launched
};
/// The last word of a process that ends in order: who goes without it has died.
struct Leaving {};

/// The controller's word on an agreement: an order, and what members recall.
struct Decide {
  std::uint64_t agreement = 0;
  bool commit = false;
};
enum class AgreementKind : std::uint8_t { ring, microBatches, restart, roles };
/// A proposal that this process has accepted, and of which it has heard no decision.
struct Undecided {
  std::uint64_t agreement = 0;
  AgreementKind kind = AgreementKind::ring;
  std::uint64_t by = 0;                ///< the controller that made it
  std::vector<std::uint64_t> members;  ///< as in the proposal
};
/// To every new controller: what this process knows of the agreements of those before it (see Succession).
struct Recall {
  std::vector<Undecided> undecided;
  std::vector<Decide> decisions;  ///< the newest
};

// ---- from the controller ----

struct SetProfiling {
  bool on = false;
  std::uint32_t mostCalls = 0;  ///< to be kept and sent when it ends; 0: none
};
struct AskClock {
  std::int64_t asked = 0;  ///< nanoseconds of the controller's clock
};
struct CloseTrap {
  std::uint64_t trap = 0;
  double limitSeconds = 10;
  bool asked = false;  ///< by the application or a person; else for tests
  bool drain = false;  ///< to a consistent cut; else ranks are held wherever they are
};
/// To one process: those that have risen of the targets that concern it.
struct DrainTargets {
  std::uint64_t trap = 0;
  std::uint64_t version = 0;
  std::vector<DrainCount> targets;
};
struct OpenTrap {
  std::uint64_t trap = 0;
  bool someoneDied = false;  ///< that is why
};
struct RunCompute {
  std::uint64_t trap = 0;
  double spanSeconds = 0.5;
};
struct RunWave {
  std::uint64_t wave = 0;
  bool probe = false;
  std::string plan;  ///< validate's encoding of the wave
};

struct AskCounter {
  std::uint64_t agreement = 0;
  AgreementKind kind = AgreementKind::ring;
  CommunicatorId communicator = 0;
};
struct Propose {
  std::uint64_t agreement = 0;
  AgreementKind kind = AgreementKind::ring;
  CommunicatorId communicator = 0;
  std::uint64_t from = 0;  ///< collective or iteration from which it holds
  std::vector<std::int32_t>
      values;  ///< ring order, micro-batches by replica, ranks that a restart leaves out, or roles by rank
  std::vector<std::uint64_t> members;  ///< the processes that have to accept it; empty: all of the job
};
/// For the screens of operators: what the controller is doing.
struct ShowState {
  std::uint32_t state = 0;
  std::uint32_t failslows = 0;
};
struct SwitchOff {};
/// To who asked to suspend or resume.
enum class SuspendOutcome : std::uint8_t { done, already, notSuspended, notAllCame, rankDied, givenUp };
struct SuspendAnswer {
  std::uint64_t request = 0;
  SuspendOutcome outcome = SuspendOutcome::done;
  std::string text;           ///< what went wrong
  std::uint32_t attempt = 0;  ///< of the request
};
/// To who asked for an examination.
struct Examined {
  std::uint64_t request = 0;
  std::string problem;  ///< not empty: there was none
  std::string content;  ///< validate's encoding
};

using Message =
    std::variant<Introduce, CommunicatorFormed, CommunicatorGone, PartKnown, Traffic, Samples, TransferProfile,
                 CallTimes, ClockAnswer, TrapState, ComputeResult, LinkResults, Counter, Vote, RequestOff, AskSuspend,
                 AskResume, AskExamination, Leaving, DrainState, Recall, RestartKnown, Reshaped, MemoryKnown,
                 SetProfiling, AskClock, CloseTrap, DrainTargets, OpenTrap, RunCompute, RunWave, AskCounter, Propose,
                 Decide, ShowState, SwitchOff, SuspendAnswer, Examined>;

/// Orders go from the controller to members; everything else the other way.
bool isOrder(const Message& message);

std::string encode(const Message& message);
/// Nothing for bytes that are not a message of ours.
std::optional<Message> decode(std::string_view bytes);

}  // namespace falcon::control
