// The call log's file, version 2, as it lies in shared memory; docs/call-log.md describes it for other readers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/call.h"
#include "base/overwriting_ring.h"
#include "base/transfer.h"

namespace falcon::instrument {

inline constexpr char callLogMagic[8] = {'F', 'A', 'L', 'C', 'O', 'N', 'C', 'L'};
inline constexpr std::uint32_t callLogVersion = 2;
inline constexpr std::uint32_t callLogHeaderBytes = 4096;

/// What the controller is doing, as shown to operators.
enum class JobState : std::uint32_t { starting, tracking, profiling, validating, mitigating, off, suspended };
const char* nameOf(JobState state);

/// A request from outside the process, obeyed by its monitor within a fraction of a second.
enum class JobCommand : std::uint32_t { none, off, suspend, resume, examine };
/// The bits above these are the command's argument: for suspend, the limit in seconds.
inline constexpr int jobCommandBits = 8;

/// A table of the file: `count` entries of `stride` bytes from `offset` on. count 0: not there.
struct CallLogSection {
  std::uint64_t offset;
  std::uint32_t stride;
  std::uint32_t count;
};
enum class SectionKind : std::uint32_t { calls, inFlight, communicators, members, transfers, makings, labels };
inline constexpr std::size_t sectionCount = 16;

/// At the start of the file, padded to callLogHeaderBytes. Plain fields are written once, atomics live.
struct CallLogHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t headerBytes;
  std::uint32_t slotBytes;
  std::uint32_t capacity;  ///< of the ring of calls; a power of two
  std::int32_t jobRank;
  std::int32_t worldSize;
  std::int64_t pid;
  double startWallTime;    ///< seconds since 1970
  std::int64_t startTime;  ///< steady clock, nanoseconds: the same clock as in the records
  char job[128];
  char host[64];
  std::atomic<std::uint64_t> head;        ///< records ever written
  std::atomic<std::uint32_t> state;       ///< JobState
  std::atomic<std::uint32_t> command;     ///< JobCommand
  std::atomic<std::uint32_t> controller;  ///< 1: this process is the job's controller
  std::atomic<std::uint32_t> held;        ///< 1: held by the trap
  std::atomic<std::int64_t> iterations;
  std::atomic<std::int64_t> iterationNanoseconds;  ///< the last one's duration; 0: not known, or no longer
  std::atomic<std::uint32_t> failslowActive;
  std::atomic<std::uint32_t> ended;          ///< 1: the process has left the job in order
  std::atomic<std::int64_t> heartbeat;       ///< when the monitor last woke, about ten times a second
  std::atomic<std::uint64_t> flightsMissed;  ///< calls that found the table of calls in flight full
  CallLogSection sections[sectionCount];     ///< by SectionKind
};
static_assert(sizeof(CallLogHeader) <= callLogHeaderBytes);

/// Of the ring of calls: `ticket` as in base/overwriting_ring.h.
/// Of the table of calls in flight: the time of entry, 0 while free, 1 while being written.
struct CallLogSlot {
  std::atomic<std::uint64_t> ticket;
  std::atomic<std::uint64_t> words[7];
};
static_assert(sizeof(CallLogSlot) == 64 && sizeof(CallRecord) == 7 * sizeof(std::uint64_t));
using CallWords = std::array<std::uint64_t, 7>;

/// A transfer of a call while per-channel timing was on, in a ring: `ticket` as in the ring of calls.
struct TransferSlot {
  std::atomic<std::uint64_t> ticket;
  std::atomic<std::uint64_t> words[9];
};
static_assert(sizeof(TransferSlot) == 80);
using TransferWords = std::array<std::uint64_t, 9>;

/// The words of a slot, which may be changing.
template <class Words, class Slot>
Words loadWords(const Slot& slot) {
  Words words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = slot.words[i].load(std::memory_order_relaxed);
  return words;
}
template <class Words, class Slot>
void storeWords(Slot& slot, const Words& words) {
  for (std::size_t i = 0; i < words.size(); ++i) slot.words[i].store(words[i], std::memory_order_relaxed);
}
/// `words`: of record `index` of a ring, where all of it is there.
template <class Words, class Slot>
RingRecord readWords(const OverwritingRing<const Slot>& ring, std::uint64_t index, Words& words) {
  return ring.read(index, [&](const Slot& slot) { words = loadWords<Words>(slot); });
}

/// The labels of a call that has some, in a ring: `ticket` as in the ring of calls. Which call they are of, the words
/// say.
struct LabelSlot {
  std::atomic<std::uint64_t> ticket;
  std::atomic<std::uint64_t> words[7];
};
static_assert(sizeof(LabelSlot) == 64);
using LabelWords = std::array<std::uint64_t, 7>;

inline LabelWords wordsOf(const LabelledCall& call) {
  return {call.communicator, call.sequence,
          static_cast<std::uint64_t>(call.operation) | std::uint64_t{static_cast<std::uint32_t>(call.peer)} << 32,
          static_cast<std::uint32_t>(call.rank), call.labels.tag, static_cast<std::uint64_t>(call.labels.iteration),
          // 0: none, as it was before there were these two
          std::uint64_t{static_cast<std::uint32_t>(call.labels.phase) + 1} |
              std::uint64_t{static_cast<std::uint32_t>(call.labels.group) + 1} << 32};
}
inline LabelledCall labelledCallOf(const LabelWords& words) {
  return {words[0],
          words[1],
          static_cast<Operation>(words[2] & 0xff),
          static_cast<std::int32_t>(words[2] >> 32),
          static_cast<Rank>(words[3]),
          {words[4], static_cast<std::int64_t>(words[5]),
           static_cast<std::int32_t>(static_cast<std::uint32_t>(words[6]) - 1),
           static_cast<std::int32_t>(static_cast<std::uint32_t>(words[6] >> 32) - 1)}};
}

/// How a communicator is made.
enum class MakingKind : std::uint32_t { init, split, shrink };
inline constexpr std::uint32_t makingKindCount = 3;
/// "ncclCommInitRank" ...
const char* nameOf(MakingKind kind);

inline TransferWords wordsOf(const TransferTiming& transfer) {
  const auto word = [](auto value) { return static_cast<std::uint64_t>(value); };
  return {transfer.communicator,
          transfer.sequence,
          word(static_cast<std::uint32_t>(transfer.channel)) | word(static_cast<std::uint32_t>(transfer.peer)) << 32,
          word(transfer.sending),
          transfer.bytes,
          word(transfer.start.count()),
          word(transfer.stop.count()),
          word(transfer.waiting.count()),
          word(transfer.moving.count())};
}
inline TransferTiming transferOf(const TransferWords& words) {
  const auto time = [&](std::size_t at) { return Nanoseconds(static_cast<std::int64_t>(words[at])); };
  return {.communicator = words[0],
          .sequence = words[1],
          .channel = static_cast<std::int32_t>(words[2]),
          .peer = static_cast<Rank>(words[2] >> 32),
          .sending = words[3] != 0,
          .bytes = words[4],
          .start = time(5),
          .stop = time(6),
          .waiting = time(7),
          .moving = time(8)};
}

/// One communicator of this process. Filled in under a lock while `change` is odd.
struct CommunicatorSlot {
  enum State : std::uint32_t { unused, live, gone };
  std::atomic<std::uint32_t> state;
  std::atomic<std::uint32_t> change;
  CommunicatorId id;
  std::int32_t rank, size;
  std::uint32_t firstMember, knownMembers;  ///< in the table of members; none are known where that was full
  std::int32_t device;
  std::uint32_t vendor;                    ///< 1: the vendor's engine, whose calls return before they are done
  std::atomic<std::uint64_t> collectives;  ///< entered so far: the number of the next one
  std::atomic<std::int64_t> lastEnter;     ///< when a call of it was last entered
  char name[64];                           ///< ncclConfig_t.commName, "" where there is none
  CallLogSlot failure;                     ///< the first call that failed, as in the table of calls in flight
};
static_assert(sizeof(CommunicatorSlot) == 184);

/// One member of a communicator, as this process sees it.
struct MemberSlot {
  std::int32_t jobRank;  ///< -1: unknown
  std::int32_t node;
  std::atomic<std::uint64_t> sent, received;  ///< messages entered so far, to it and from it
};
static_assert(sizeof(MemberSlot) == 24);

/// A communicator that this process is making: there is no other place for it yet.
struct MakingSlot {
  static constexpr std::uint32_t mostArrived = 1024;  ///< ranks whose arrival can be shown
  std::atomic<std::uint64_t> ticket;                  ///< as in the table of calls in flight
  std::uint64_t key;                                  ///< the same on all ranks: of the unique id, or the parent's id
  std::int32_t rank, size;                            ///< size: of the parent, for a part of it
  std::uint32_t kind;                                 ///< MakingKind
  std::atomic<std::uint32_t> met;                     ///< 1: all ranks have come
  std::atomic<std::uint64_t> arrived[mostArrived / 64];  ///< a bit a rank; all zero where this process does not know
  char name[64];                                         ///< ncclConfig_t.commName
};
static_assert(sizeof(MakingSlot) == 224);

}  // namespace falcon::instrument
