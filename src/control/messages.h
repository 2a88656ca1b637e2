// What members and the controller say to each other over the bus. Encoded by base/wire.h, decoded defensively:
// a message that does not decode is dropped and logged.
#pragma once

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
struct LayoutKnown {
  int dataParallelSize = 1, pipelineParallelSize = 1, tensorParallelSize = 1;
  int dataParallelIndex = 0, pipelineParallelIndex = 0, tensorParallelIndex = 0;
  int microBatches = 1;
  std::vector<std::int32_t> split;  ///< micro-batches by replica, in force; empty: equal
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

/// One finished iteration of one process.
struct Sample {
  std::int64_t index = 0;
  double seconds = 0;
  double outside = 0;      ///< of it, outside of the library
  int microBatches = 0;    ///< computed by this rank; 0: unknown
  bool disturbed = false;  ///< overlapped a trap or a change of plan: not to be judged
  bool provisional = false;
  std::vector<CommunicatorTime> communicators;
};
struct Samples {
  std::vector<Sample> samples;
};

/// What per-channel timing saw of one connection, summed over channels and operations.
struct TransferSum {
  CommunicatorId id = 0;
  Rank peer = -1;  ///< rank of the communicator
  bool sending = false;
  std::uint64_t bytes = 0;
  double moving = 0;   ///< seconds
  double waiting = 0;  ///< seconds
};
struct TransferProfile {
  std::vector<TransferSum> sums;
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
  std::string problem;  ///< not empty: the test failed
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

// ---- from the controller ----

struct SetProfiling {
  bool on = false;
};
struct CloseTrap {
  std::uint64_t trap = 0;
  double limitSeconds = 10;
};
struct OpenTrap {
  std::uint64_t trap = 0;
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

enum class AgreementKind : std::uint8_t { ring, microBatches };
struct AskCounter {
  std::uint64_t agreement = 0;
  AgreementKind kind = AgreementKind::ring;
  CommunicatorId communicator = 0;
};
struct Propose {
  std::uint64_t agreement = 0;
  AgreementKind kind = AgreementKind::ring;
  CommunicatorId communicator = 0;
  std::uint64_t from = 0;            ///< collective or iteration from which it holds
  std::vector<std::int32_t> values;  ///< ring order, or micro-batches by replica
};
struct Decide {
  std::uint64_t agreement = 0;
  bool commit = false;
};
/// For the screens of operators: what the controller is doing.
struct ShowState {
  std::uint32_t state = 0;
  std::uint32_t failslows = 0;
};
struct SwitchOff {};

using Message =
    std::variant<Introduce, CommunicatorFormed, CommunicatorGone, LayoutKnown, Traffic, Samples, TransferProfile,
                 TrapState, ComputeResult, LinkResults, Counter, Vote, RequestOff, SetProfiling, CloseTrap, OpenTrap,
                 RunCompute, RunWave, AskCounter, Propose, Decide, ShowState, SwitchOff>;

/// Orders go from the controller to members; everything else the other way.
bool isOrder(const Message& message);

std::string encode(const Message& message);
/// Nothing for bytes that are not a message of ours.
std::optional<Message> decode(std::string_view bytes);

}  // namespace falcon::control
